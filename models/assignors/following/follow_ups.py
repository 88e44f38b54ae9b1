"""Counts follow-ups: those without a recommendation, and those that brought nothing new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caughtup.models.assignors.following.follower import FOLLOWED, FollowerDecision, Patience
from caughtup.models.assignors.following.recommendation import FollowedRecommendation, Objection
from caughtup.models.ids import ProcessId, TaskId


@dataclass(frozen=True, slots=True)
class FollowerInputs:
    """The inputs of a decision besides the group: the newest recommendation, or why there is none.

    The recommendation is at least ``age_ms`` old. ``waited`` and ``repeated`` are as for
    ``follow``.
    """

    newest: FollowedRecommendation | Objection
    age_ms: int = 0
    waited: int = 0
    repeated: int = 0


class FollowUpCounter:
    """Counts the follow-up rebalances that a follower asked for.

    Rebalances that come sooner, for another reason, don't count. Nor do a recommendation's
    contents: a new name, or one that moves tasks to and fro, is no news; only what the leader sees
    itself counts. Times are in ms on a monotonic clock. Source: ``caughtup.FollowUpCounter``.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._processes: frozenset[ProcessId] = frozenset()
        #: The copies that have been caught up at any time since the set of processes last changed.
        self._ready: dict[ProcessId, set[TaskId]] = {}
        self._counted_ms = 0.0
        #: The time half-way to the follow-up that a recommendation asked for; None without one.
        self._asked_ms: float | None = None
        #: Follow-ups without a recommendation that holds.
        self.waited = 0
        self._fruitless = 0

    def begin(self, ready: Mapping[ProcessId, Iterable[TaskId]], now_ms: float) -> None:
        """Begin a rebalance with the copies that are caught up now, by process.

        Counting starts again if the processes are others than before. A copy that is caught up for
        the first time is news.
        """
        processes = frozenset(ready)
        if processes != self._processes:
            self._processes = processes
            self._ready = {process: set(tasks) for process, tasks in ready.items()}
            self.waited = self._fruitless = 0
            self._asked_ms = None
            self._counted_ms = now_ms - self._patience.follow_up_ms
            return
        news = False
        for process, tasks in ready.items():
            known = len(self._ready[process])
            self._ready[process].update(tasks)
            news |= len(self._ready[process]) > known
        if news:
            self._fruitless = 0
        elif self._asked_ms is not None and now_ms >= self._asked_ms:
            self._fruitless += 1

    @property
    def repeated(self) -> int:
        """The number of requested follow-ups in a row that found nothing new.

        The first doesn't count: the time at which a copy is caught up is an estimate, maybe a
        little early.
        """
        return max(0, self._fruitless - 1)

    def count(self, decision: FollowerDecision, now_ms: float) -> None:
        """Count a rebalance by the follower's decision."""
        followed = decision.reason == FOLLOWED
        due = now_ms - self._counted_ms >= self._patience.follow_up_ms / 2
        if followed:
            self.waited = 0
        elif due and self.waited < self._patience.follow_ups:
            self.waited += 1
        if due:
            self._counted_ms = now_ms
        self._asked_ms = None
        if followed and decision.follow_up_ms is not None:
            self._asked_ms = now_ms + decision.follow_up_ms // 2
