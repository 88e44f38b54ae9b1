"""The service's records that no broker accepts, set aside by topic and key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

#: The most keys that are kept, the newest; the counts have all.
KEYS_KEPT = 200
#: The most characters of a key and of a message that are kept.
_CHARACTERS = 200


@dataclass(frozen=True, order=True, slots=True)
class SetAside:
    """A key whose newest record was set aside: the number in a row, why, and the last time (ms).

    ``key`` is a group, or a partition in movement. ``reason`` is a code: ``too_large`` …
    """

    topic: str
    key: str
    reason: str
    message: str
    times: int
    at_ms: int


class SetAsideRecords:
    """Counts the records that are set aside. ``on_set_aside`` is called with each."""

    def __init__(self, on_set_aside: Callable[[SetAside], None] | None = None) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.on_set_aside = on_set_aside
        self._kept: dict[tuple[str, str], SetAside] = {}

    def add(self, topic: str, key: bytes, reason: str, message: str, now_ms: int) -> None:
        """Count a record as set aside at a time (ms)."""
        self.counts[topic, reason] += 1
        of = topic, _text(key)
        before = self._kept.pop(of, None)  # the newest goes to the end
        times = 1 if before is None else before.times + 1
        kept = self._kept[of] = SetAside(*of, reason, message[:_CHARACTERS], times, now_ms)
        if len(self._kept) > KEYS_KEPT:
            del self._kept[next(iter(self._kept))]
        if self.on_set_aside is not None:
            self.on_set_aside(kept)

    def written(self, topic: str, key: bytes) -> None:
        """Remove a key, since a newer record of it was written."""
        if self._kept:
            self._kept.pop((topic, _text(key)), None)

    def forget(self, key: str) -> None:
        """Remove a key that is gone, from all topics."""
        for aside in self.of(key):
            del self._kept[aside.topic, aside.key]

    def of(self, key: str) -> list[SetAside]:
        """Return the records of a key that are set aside, by topic."""
        return sorted(one for one in self._kept.values() if one.key == key[:_CHARACTERS])

    def newest(self) -> list[SetAside]:
        """Return the kept records, the newest first."""
        return list(reversed(self._kept.values()))


def _text(key: bytes) -> str:
    return key.decode(errors="backslashreplace")[:_CHARACTERS]
