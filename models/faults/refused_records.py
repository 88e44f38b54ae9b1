"""Refused records of the service's own topics: counted by topic and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

#: The most bytes of a key and characters of an error that are kept: both may come from any writer.
_SHOWN = 80


@dataclass(frozen=True, order=True, slots=True)
class Refusal:
    """A refused record: its topic, the start of its key, why, and when (ms).

    ``reason`` is a code: ``too_large``, ``too_deep``, ``bad_json``, ``bad_type``, ``bad_key``,
    ``other_schema``, ``from_the_future`` …
    """

    topic: str
    key: str
    reason: str
    message: str
    at_ms: int


class RefusedRecords:
    """Counts refused records, and keeps the newest of each topic.

    ``on_refusal`` is called with each. Topics are the service's own and reasons are codes, so that
    the memory doesn't grow with what is written.
    """

    def __init__(self, on_refusal: Callable[[Refusal], None] | None = None) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.newest: dict[str, Refusal] = {}
        self.on_refusal = on_refusal

    def refuse(self, topic: str, key: bytes | None, reason: str, message: str, now_ms: int) -> None:
        """Count a record of ``topic`` as refused at a time (ms)."""
        self.counts[topic, reason] += 1
        text = "" if key is None else key[:_SHOWN].decode(errors="backslashreplace")[:_SHOWN]
        refusal = self.newest[topic] = Refusal(topic, text, reason, message[:_SHOWN], now_ms)
        if self.on_refusal is not None:
            self.on_refusal(refusal)

    def of(self, topic: str) -> int:
        """Return the number of refused records of a topic."""
        return sum(count for (name, _), count in self.counts.items() if name == topic)
