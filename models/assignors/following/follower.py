"""How a follower inside an application decides a rebalance, and counts follow-ups.

``followers/kafka_streams`` does the same in Java, on the leader's poll thread. With this function
the service knows what a leader will do, and checks what it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from caughtup.models.assignment.configs import Configs
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.following.placement import (
    ClientStates,
    Placement,
    balance_step,
    in_place,
)
from caughtup.models.assignors.following.recommendation import FollowedRecommendation, Objection
from caughtup.models.assignors.following.rules import find_objection, recommended
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
    """Counts the follow-up rebalances that a follower requested.

    Rebalances that come sooner, for another reason, don't count. A recommendation's contents, such
    as a new name, are no news: only what the leader sees itself is. Times are in ms on a monotonic
    clock. Source: ``caughtup.FollowUpCounter``.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._processes: frozenset[ProcessId] = frozenset()
        #: The copies that have been caught up at any time since the set of processes last changed.
        self._ready: dict[ProcessId, set[TaskId]] = {}
        self._counted_ms = 0.0
        #: The time half-way to the follow-up that a recommendation requested; None without one.
        self._asked_ms: float | None = None
        #: Follow-ups without a recommendation that holds.
        self.waited = 0
        self._fruitless = 0

    def begin(self, ready: Mapping[ProcessId, Iterable[TaskId]], now_ms: float) -> None:
        """Begin a rebalance with the copies that are caught up now, by process.

        Counting starts again if the set of processes changed, or if a copy is caught up for the
        first time.
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

        The first one doesn't count: the time at which a copy is caught up is an estimate, maybe too
        early.
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


FOLLOWED = "followed"
GIVEN_UP = "given_up"
_MOST_DOUBLINGS = 20


@dataclass(frozen=True, slots=True)
class Patience:
    """A follower's configuration: times in ms, and the follow-ups without a recommendation.

    The defaults are those of ``caughtup.follow.up.ms``, ``caughtup.recommendation.max.age.ms`` and
    ``caughtup.follow.ups``.
    """

    follow_up_ms: int = 5_000
    max_age_ms: int = 900_000
    follow_ups: int = 3


@dataclass(frozen=True, slots=True)
class FollowerDecision:
    """A follower's decision.

    ``reason`` is ``followed``, ``given_up``, or the code of the objection because of which all
    tasks stay in place. ``follow_up_ms`` is the delay until the next wanted rebalance; None without
    one.
    """

    reason: str
    decision_id: str | None
    active: Mapping[ProcessId, tuple[TaskId, ...]]
    standby: Mapping[ProcessId, tuple[TaskId, ...]]
    follow_up_ms: int | None


def follow(
    scenario: Scenario,
    newest: FollowedRecommendation | Objection,
    *,
    age_ms: int = 0,
    waited: int = 0,
    repeated: int = 0,
    patience: Patience = Patience(),
) -> FollowerDecision:
    """Decide a rebalance as the follower does.

    ``scenario`` is the group as the leader knows it; ``newest`` is the newest recommendation, at
    least ``age_ms`` old, or why there is none. ``waited`` is the number of follow-ups without a
    recommendation that holds, ``repeated`` the number of follow-ups in a row that recommendations
    asked for and that brought nothing new. Source: ``caughtup.Following``.
    """
    states = ClientStates(scenario)
    objection = newest
    if isinstance(newest, FollowedRecommendation):
        held = find_objection(states, newest, age_ms, patience.max_age_ms)
        if held is None:
            delay = None
            if newest.probing_needed:
                delay = _probe_after_ms(scenario.configs, newest, patience, repeated)
            placement = recommended(newest)
            return _decision(states, FOLLOWED, newest.decision_id, placement, delay)
        objection = held
    assert isinstance(objection, Objection)
    interval = scenario.configs.probing_rebalance_interval_ms
    if waited < patience.follow_ups:
        kept = in_place(states)
        again = backoff_ms(patience.follow_up_ms, interval, repeated)
        return _decision(states, objection.code, None, kept, max(patience.follow_up_ms, again))
    step = balance_step(states)
    return _decision(states, GIVEN_UP, None, step.placement, interval if step.waiting else None)


def _probe_after_ms(
    configs: Configs, recommendation: FollowedRecommendation, patience: Patience, repeated: int
) -> int:
    """Return the delay until the next probing rebalance, in ms."""
    after = recommendation.worthwhile_after_ms
    first = max(patience.follow_up_ms, 2 * patience.follow_up_ms if after is None else after)
    return backoff_ms(first, configs.probing_rebalance_interval_ms, repeated)


def backoff_ms(first_ms: int, most_ms: int, repeated: int) -> int:
    """Return a delay, doubled for each follow-up that brought nothing new, up to ``most_ms``."""
    return min(first_ms << min(repeated, _MOST_DOUBLINGS), most_ms)


def _decision(
    states: ClientStates,
    reason: str,
    decision_id: str | None,
    placement: Placement,
    follow_up_ms: int | None,
) -> FollowerDecision:
    active: dict[ProcessId, list[TaskId]] = {process: [] for process in states.clients}
    for task, process in placement.active.items():
        active[process].append(task)
    return FollowerDecision(
        reason=reason,
        decision_id=decision_id,
        active={process: tuple(sorted(tasks)) for process, tasks in active.items()},
        standby={p: tuple(sorted(placement.standby[p])) for p in states.clients},
        follow_up_ms=follow_up_ms,
    )
