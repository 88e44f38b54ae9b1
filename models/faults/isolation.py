"""Unexpected failures: counted by part and cause, and kept by subject.

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
