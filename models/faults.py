"""What failed although nothing should: counted by part and cause, and kept by what it befell.

A failure costs the group, topic or partition that it befell one turn; everything else goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from caughtup.models.errors import CaughtupError

#: Subjects kept with what befell them, the newest; the totals count them all.
FAULTS_KEPT = 200
#: Characters kept of a message and of a subject's name: somebody else may have chosen both.
_CHARACTERS = 200


class Fault(NamedTuple):
    """What befell a subject in a part of the service, how many times, and when last (ms).

    ``subject`` names a group, a topic or a partition; ``cause`` is the error's code or class.
    """

    part: str
    subject: str
    cause: str
    message: str
    times: int
    last_ms: int


class Faults:
    """Counts failures. ``on_fault`` is told of each, with the error itself."""

    def __init__(self, on_fault: Callable[[Fault, Exception], None] | None = None) -> None:
        self.totals: Counter[tuple[str, str]] = Counter()
        self.on_fault = on_fault
        self._kept: dict[tuple[str, str, str], Fault] = {}

    def note(self, part: str, subject: str, error: Exception, now_ms: int) -> None:
        """Count a failure of ``part`` over ``subject`` at a moment (ms)."""
        cause = error.code if isinstance(error, CaughtupError) else type(error).__name__
        self.totals[part, cause] += 1
        key = part, subject[:_CHARACTERS], cause
        before = self._kept.pop(key, None)  # the newest goes to the end
        times = 1 if before is None else before.times + 1
        fault = self._kept[key] = Fault(*key, str(error)[:_CHARACTERS], times, now_ms)
        if len(self._kept) > FAULTS_KEPT:
            del self._kept[next(iter(self._kept))]
        if self.on_fault is not None:
            self.on_fault(fault, error)

    @contextmanager
    def isolated(self, part: str, subject: str, now_ms: int) -> Iterator[None]:
        """Count what is raised within, and go on behind it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this subject alone
            self.note(part, subject, error, now_ms)

    def newest(self) -> list[Fault]:
        """List what is kept, the newest first."""
        return list(reversed(self._kept.values()))
