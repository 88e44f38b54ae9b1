"""What a follower inside an application makes of a recommendation, decided as it decides.

``followers/kafka_streams`` decides the same in Java, on the leader's poll thread. Here it is a
function, by which the service knows what a leader will do and can check what it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.models.assignment.configs import Configs
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.following.balance import balance_step
from caughtup.models.assignors.following.objection import Objection
from caughtup.models.assignors.following.placement import ClientStates, Placement, in_place
from caughtup.models.assignors.following.recommendation import FollowedRecommendation
from caughtup.models.assignors.following.rules import find_objection, recommended
from caughtup.models.ids import ProcessId, TaskId

FOLLOWED = "followed"
GIVEN_UP = "given_up"
_MOST_DOUBLINGS = 20


@dataclass(frozen=True, slots=True)
class Patience:
    """How a follower is configured: ms, and follow-ups that it waits for a recommendation.

    The defaults are ``caughtup.follow.up.ms``, ``caughtup.recommendation.max.age.ms`` and
    ``caughtup.follow.ups`` when an application doesn't set them.
    """

    follow_up_ms: int = 5_000
    max_age_ms: int = 900_000
    follow_ups: int = 3


@dataclass(frozen=True, slots=True)
class FollowerDecision:
    """What a rebalance comes to.

    ``reason`` is ``followed``, ``given_up``, or the code of the objection for which everything is
    kept where it is. ``follow_up_ms`` is how long after it the next rebalance is wanted; None
    where it isn't.
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

    ``scenario`` is what the leader knows; ``newest`` the newest recommendation, at least
    ``age_ms`` old, or why there is none. ``waited`` follow-ups passed without one that holds, and
    ``repeated`` in a row that recommendations asked for brought nothing new.
    Source: ``caughtup.Following``.
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
        again = later_ms(patience.follow_up_ms, interval, repeated)
        return _decision(states, objection.code, None, kept, max(patience.follow_up_ms, again))
    step = balance_step(states)
    return _decision(states, GIVEN_UP, None, step.placement, interval if step.waiting else None)


def _probe_after_ms(
    configs: Configs, recommendation: FollowedRecommendation, patience: Patience, repeated: int
) -> int:
    """Return when to look again, in ms from now."""
    after = recommendation.worthwhile_after_ms
    first = max(patience.follow_up_ms, 2 * patience.follow_up_ms if after is None else after)
    return later_ms(first, configs.probing_rebalance_interval_ms, repeated)


def later_ms(first_ms: int, most_ms: int, repeated: int) -> int:
    """Double a time for each follow-up that brought nothing, whatever was recommended by then."""
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
