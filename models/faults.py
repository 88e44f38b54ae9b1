"""Unexpected failures, refused records, and records that were set aside, all counted.

A failure costs its group, topic or partition one turn; everything else goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from caughtup.models.errors import error_code

#: The most faults that are kept, the newest; the totals count all.
FAULTS_KEPT = 200
#: Messages and subjects' names are truncated: clients may have chosen both.
_CHARACTERS = 200


@dataclass(frozen=True, order=True, slots=True)
class Fault:
    """A failure over a subject in a part of the service, how many times, and when last (ms).

    ``subject`` is a group, a topic or a partition; ``cause`` is the error's code or class.
    """

    part: str
    subject: str
    cause: str
    message: str
    times: int
    last_ms: int


class Faults:
    """Counts failures. ``on_fault`` is called with each one and its error."""

    def __init__(self, on_fault: Callable[[Fault, Exception], None] | None = None) -> None:
        self.totals: Counter[tuple[str, str]] = Counter()
        self.on_fault = on_fault
        self._kept: dict[tuple[str, str, str], Fault] = {}

    def note(self, part: str, subject: str, error: Exception, now_ms: int) -> None:
        """Count a failure of ``part`` over ``subject`` at a time (ms)."""
        cause = error_code(error)
        self.totals[part, cause] += 1
        key = part, subject[:_CHARACTERS], cause
        before = self._kept.pop(key, None)  # the newest goes to the end
        times = 1 if before is None else before.times + 1
        fault = self._kept[key] = Fault(*key, str(error)[:_CHARACTERS], times, now_ms)
        if len(self._kept) > FAULTS_KEPT:
            del self._kept[next(iter(self._kept))]
        if self.on_fault is not None:
            self.on_fault(fault, error)

    def isolated(
        self,
        part: str,
        subject: str,
        now_ms: int,
        otherwise: Callable[[Exception], object] | None = None,
    ) -> Isolation:
        """Return a context manager that counts an error and suppresses it.

        ``otherwise`` is called with the error: it removes what this part had of the subject, so
        that nothing stale is shown.
        """
        return Isolation(self, part, subject, now_ms, otherwise)

    def newest(self) -> list[Fault]:
        """Return the kept faults, the newest first."""
        return list(reversed(self._kept.values()))


class Isolation:
    """The context manager of ``Faults.isolated``; a class, since a generator would be too slow."""

    __slots__ = ("_faults", "_now_ms", "_otherwise", "_part", "_subject")

    def __init__(
        self,
        faults: Faults,
        part: str,
        subject: str,
        now_ms: int,
        otherwise: Callable[[Exception], object] | None,
    ) -> None:
        self._faults = faults
        self._part = part
        self._subject = subject
        self._now_ms = now_ms
        self._otherwise = otherwise

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):  # none, or a cancelled task, or the process's end
            return False
        self._faults.note(self._part, self._subject, error, self._now_ms)
        if self._otherwise is not None:
            self._otherwise(error)
        return True


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


#: The most keys that are kept, the newest; the counts have all.
KEYS_KEPT = 200


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
