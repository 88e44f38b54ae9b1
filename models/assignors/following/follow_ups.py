"""Counts follow-ups: those without a recommendation, and those that brought nothing new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caughtup.models.assignors.following.follower import FOLLOWED, FollowerDecision, Patience
from caughtup.models.assignors.following.objection import Objection
from caughtup.models.assignors.following.recommendation import FollowedRecommendation
from caughtup.models.ids import ProcessId, TaskId


@dataclass(frozen=True, slots=True)
class FollowerInputs:
    """A decision's inputs besides the group: the newest recommendation, or why there is none.

    It is at least ``age_ms`` old. ``waited`` and ``repeated`` count follow-ups, as for ``follow``.
    """

    newest: FollowedRecommendation | Objection
    age_ms: int = 0
    waited: int = 0
    repeated: int = 0


class FollowUpCounter:
    """Counts the rebalances that waiting brought, and not those that others brought at once.

    Nothing that a record says counts here, only what the leader sees itself: a recommendation with
    a new name, or one that moves tasks to and fro, is no news. Times are in ms on a clock
    that never goes back. Source: ``caughtup.FollowUpCounter``.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._processes: frozenset[ProcessId] = frozenset()
        #: The copies that were ever caught up, since these processes are the ones there are.
        self._ready: dict[ProcessId, set[TaskId]] = {}
        self._counted_ms = 0.0
        #: When the follow-up was half-way that a recommendation asked for; None without one.
        self._asked_ms: float | None = None
        #: Follow-ups that passed without a recommendation that holds.
        self.waited = 0
        self._fruitless = 0

    def begin(self, ready: Mapping[ProcessId, Iterable[TaskId]], now_ms: float) -> None:
        """Begin a rebalance with the copies that are caught up now, by process.

        With other processes than before counting starts anew. A copy that is caught up for the
        first time is news.
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
        """Return how many follow-ups in a row recommendations asked for that found nothing new.

        The first isn't counted: when a copy is caught up is an estimate, and may be short by little.
        """
        return max(0, self._fruitless - 1)

    def count(self, decision: FollowerDecision, now_ms: float) -> None:
        """Count a rebalance by its decision."""
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
