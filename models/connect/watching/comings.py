"""Who joined and left a Connect group, who came back in time, and what has it rebalance for ever."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from caughtup.models.connect.generation import ConnectGeneration
from caughtup.models.connect.watching.told import config_offset, worker_id
from caughtup.models.durations import counted

#: What storms are looked for in, in ms.
WINDOW_MS = 10 * 60_000
#: So often in a window is no restart any more.
_OFTEN = 3
#: Generations in a window that new configurations brought, one after another.
_MANY_CONFIGURATIONS = 10
#: Absences, and generations of the window, that are kept, the newest.
_KEPT = 200


class Outcome(StrEnum):
    """What became of a worker that left.

    ``away``: its work waits for it. ``in_time``: it was back before its work was dealt, ``late``:
    after that, ``gone``: it isn't back and its work was dealt.
    """

    AWAY = "away"
    IN_TIME = "in_time"
    LATE = "late"
    GONE = "gone"


class Absence(NamedTuple):
    """A worker that left: when, until when its work waited (None: it didn't), and when it was back."""

    worker: str
    left_ms: int
    waits_until_ms: int | None
    back_ms: int | None = None

    def outcome(self, now_ms: int) -> Outcome:
        """Return what became of it by now (ms)."""
        until_ms = self.left_ms if self.waits_until_ms is None else self.waits_until_ms
        if self.back_ms is not None:
            return Outcome.IN_TIME if self.back_ms < until_ms else Outcome.LATE
        return Outcome.AWAY if now_ms < until_ms else Outcome.GONE


class _Seen(NamedTuple):
    """A generation of the window: when it was, and what it came of as far as that can be seen."""

    at_ms: int
    generation: int
    joined: tuple[str, ...]
    left: tuple[str, ...]
    reconfigured: bool
    config_mismatch: bool


class Storm(NamedTuple):
    """A group that can't come to rest: why, and since when (ms).

    ``cause``: ``worker`` (one comes and goes), ``config_mismatch`` (leader and workers can't agree
    how far the configuration goes) or ``configuration`` (it is changed again and again).
    ``culprit`` is the worker, "" for the others.
    """

    cause: str
    culprit: str
    joined: int
    left: int
    generations: int
    since_ms: int

    @property
    def why(self) -> str:
        """Describe it in a sentence."""
        times = f"{self.generations} generations in {WINDOW_MS // 60_000} minutes"
        if self.cause == "worker":
            left, joined = counted(self.left, "time"), counted(self.joined, "time")
            return f"{times}: {self.culprit} left {left} and joined {joined}"
        if self.cause == "config_mismatch":
            return f"{times}: a leader has not read the config topic as far as its workers have"
        return f"{times}: connectors' configurations change again and again"


@dataclass(frozen=True, slots=True)
class Comings:
    """Who came and went in the generations of a window. ``began``: some generation was seen."""

    seen: tuple[_Seen, ...] = ()
    absences: tuple[Absence, ...] = ()

    def after(self, before: ConnectGeneration | None, now: ConnectGeneration) -> Comings:
        """Return it with one more generation; ``before`` is the one before, None at first."""
        here = {worker_id(worker): name for name, worker in now.workers.items()}
        there = {} if before is None else _by_worker(before)
        left = tuple(sorted(w for w, member in there.items() if here.get(w) != member))
        joined = tuple(sorted(w for w, member in here.items() if there.get(w) != member))
        if before is None:
            joined = ()  # who was there before that isn't known
        seen = _Seen(
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
        self, seen: _Seen, waits_until_ms: int | None, here: dict[str, str]
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
        """Return the storm that there is by now (ms), None where there is none.

        Each worker of a rolling restart leaves once, however many generations that makes.
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
