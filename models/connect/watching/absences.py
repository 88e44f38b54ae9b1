"""Workers that joined, left and came back, and what keeps a Connect group rebalancing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from caughtup.models.connect.generation import ConnectGeneration, config_offset, worker_id
from caughtup.models.durations import counted

#: The window in which storms are looked for, in ms.
WINDOW_MS = 10 * 60_000
#: A worker that leaves this often in a window isn't just restarting.
_OFTEN = 3
#: This many generations in a window after changes of the configuration are a storm.
_MANY_CONFIGURATIONS = 10
#: The most absences, and generations of the window, that are kept: the newest ones.
_KEPT = 200


class AbsenceOutcome(StrEnum):
    """The outcome of an absence.

    ``away``: the work waits for the worker. ``in_time``: the worker came back before its work was
    assigned to others, ``late``: after that. ``gone``: its work was assigned, and it is not back.
    """

    AWAY = "away"
    IN_TIME = "in_time"
    LATE = "late"
    GONE = "gone"


class Absence(NamedTuple):
    """A worker that left, until when its work waits (None: not at all), when it came back; ms."""

    worker: str
    left_ms: int
    waits_until_ms: int | None
    back_ms: int | None = None

    def outcome(self, now_ms: int) -> AbsenceOutcome:
        """Return the outcome at ``now_ms``."""
        until_ms = self.left_ms if self.waits_until_ms is None else self.waits_until_ms
        if self.back_ms is not None:
            return AbsenceOutcome.IN_TIME if self.back_ms < until_ms else AbsenceOutcome.LATE
        return AbsenceOutcome.AWAY if now_ms < until_ms else AbsenceOutcome.GONE


class _SeenGeneration(NamedTuple):
    """A generation of the window, its time in ms, and what may have caused it."""

    at_ms: int
    generation: int
    joined: tuple[str, ...]
    left: tuple[str, ...]
    reconfigured: bool
    config_mismatch: bool


class Storm(NamedTuple):
    """A group that keeps rebalancing: the cause, and since when (ms).

    ``cause``: ``worker`` (one leaves and joins repeatedly), ``config_mismatch`` (the leader has
    not read the config topic as far as workers have) or ``configuration`` (connectors are
    reconfigured repeatedly). ``culprit`` is the worker of the first cause, else "".
    """

    cause: str
    culprit: str
    joined: int
    left: int
    generations: int
    since_ms: int

    @property
    def why(self) -> str:
        """The storm in a sentence."""
        times = f"{self.generations} generations in {WINDOW_MS // 60_000} minutes"
        if self.cause == "worker":
            left, joined = counted(self.left, "time"), counted(self.joined, "time")
            return f"{times}: {self.culprit} left {left} and joined {joined}"
        if self.cause == "config_mismatch":
            return f"{times}: a leader has not read the config topic as far as its workers have"
        return f"{times}: connectors' configurations change again and again"


@dataclass(frozen=True, slots=True)
class MembershipWindow:
    """The generations of a window and the absences of workers, oldest first."""

    seen: tuple[_SeenGeneration, ...] = ()
    absences: tuple[Absence, ...] = ()

    def after(self, before: ConnectGeneration | None, now: ConnectGeneration) -> MembershipWindow:
        """Return the window with one more generation; ``before`` is None for the first."""
        here = {worker_id(worker): name for name, worker in now.workers.items()}
        there = {} if before is None else _by_worker(before)
        left = tuple(sorted(w for w, member in there.items() if here.get(w) != member))
        joined = tuple(sorted(w for w, member in here.items() if there.get(w) != member))
        if before is None:
            joined = ()  # the members before the first generation are unknown
        seen = _SeenGeneration(
            max(now.as_of_ms, 0),
            now.generation,
            joined,
            left,
            reconfigured=before is not None and config_offset(before) != config_offset(now),
            config_mismatch=bool(now.error),
        )
        recent = [one for one in self.seen if seen.at_ms - one.at_ms < WINDOW_MS]
        return replace(
            self,
            seen=(*recent, seen)[-_KEPT:],
            absences=self._absences(seen, now.rejoin_at_ms, here)[-_KEPT:],
        )

    def _absences(
        self, seen: _SeenGeneration, waits_until_ms: int | None, here: dict[str, str]
    ) -> tuple[Absence, ...]:
        known = [
            one._replace(back_ms=seen.at_ms) if one.back_ms is None and one.worker in here else one
            for one in self.absences
            if seen.at_ms - one.left_ms < WINDOW_MS or one.back_ms is None
        ]
        for worker in seen.left:
            back_ms = seen.at_ms if worker in here else None
            until_ms = seen.at_ms + 1 if worker in here else waits_until_ms
            known.append(Absence(worker, seen.at_ms, until_ms, back_ms))
        return tuple(known)

    def storm(self, now_ms: int) -> Storm | None:
        """Return the storm at ``now_ms``, None without one.

        A rolling restart is none: each worker leaves once, however many generations that makes.
        """
        recent = [one for one in self.seen if now_ms - one.at_ms < WINDOW_MS]
        if len(recent) < _OFTEN:
            return None
        joined = Counter(worker for one in recent for worker in one.joined)
        left = Counter(worker for one in recent for worker in one.left)
        mismatches = sum(one.config_mismatch for one in recent)
        changes = sum(one.reconfigured and not one.left and not one.joined for one in recent)
        worst = max(sorted(left), key=lambda worker: left[worker], default="")
        if left[worst] >= _OFTEN:
            cause, culprit = "worker", worst
        elif mismatches >= _OFTEN:
            cause, culprit = "config_mismatch", ""
        elif changes >= _MANY_CONFIGURATIONS:
            cause, culprit = "configuration", ""
        else:
            return None
        return Storm(cause, culprit, joined[culprit], left[culprit], len(recent), recent[0].at_ms)


def _by_worker(generation: ConnectGeneration) -> dict[str, str]:
    return {worker_id(worker): name for name, worker in generation.workers.items()}
