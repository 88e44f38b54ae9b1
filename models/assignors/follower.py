"""What a follower inside an application makes of a recommendation, decided as it decides.

``followers/kafka_streams`` decides the same in Java, on the leader's poll thread. Here it is a
function, by which the service knows what a leader will do and can check what it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.models.assignors.configs import Configs
from caughtup.models.assignors.followed_recommendation import FollowedRecommendation
from caughtup.models.assignors.follower_balance import balance_step
from caughtup.models.assignors.follower_placement import Placement, Standing, in_place
from caughtup.models.assignors.scenario import Scenario
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
class Objection:
    """Why a recommendation isn't followed, or why there is none: a code and a clause."""

    code: str
    message: str


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
    the newest was followed ``repeated`` times before. Source: ``caughtup.Following``.
    """
    standing = Standing(scenario)
    objection = newest
    if isinstance(newest, FollowedRecommendation):
        held = find_objection(standing, newest, age_ms, patience.max_age_ms)
        if held is None:
            delay = None
            if newest.probing_needed:
                delay = _probe_after_ms(scenario.configs, newest, patience, repeated)
            placement = _recommended(standing, newest)
            return _decision(standing, FOLLOWED, newest.decision_id, placement, delay)
        objection = held
    assert isinstance(objection, Objection)
    if waited < patience.follow_ups:
        kept = in_place(standing)
        return _decision(standing, objection.code, None, kept, patience.follow_up_ms)
    step = balance_step(standing)
    interval = scenario.configs.probing_rebalance_interval_ms
    return _decision(standing, GIVEN_UP, None, step.placement, interval if step.waiting else None)


def find_objection(
    standing: Standing, recommendation: FollowedRecommendation, age_ms: int, max_age_ms: int
) -> Objection | None:
    """Say why a recommendation doesn't hold for an application; None when it does."""
    found = _names(standing, recommendation) or _configs(standing.scenario.configs, recommendation)
    if found:
        return found
    placement = _recommended(standing, recommendation)
    configs = standing.scenario.configs
    extra = placement.extra_copies(configs.num_standby_replicas)
    if extra > configs.max_warmup_replicas:
        return Objection("too_many_copies", f"it has {extra} copies beyond num.standby.replicas")
    for task, owners in standing.owners.items():
        for owner in owners:
            at = (placement.active[task], *recommendation.found.get(task, ()))
            if owner not in at:
                return Objection("moved_since", f"task {task} is on {owner}, where it found it not")
    for task, destination in placement.active.items():
        if destination not in standing.owners[task] and destination not in standing.may_run(task):
            return Objection("not_caught_up", f"task {task} is not caught up on {destination}")
    if age_ms > max_age_ms and _changes_anything(standing, recommendation, placement):
        seconds = age_ms // 1000
        return Objection(
            "too_old", f"it is at least {seconds} s old and would still change something"
        )
    return None


def _names(standing: Standing, recommendation: FollowedRecommendation) -> Objection | None:
    """Hold the recommendation's processes and tasks against those there are."""
    if recommendation.standby.keys() != standing.clients.keys():
        return Objection("other_processes", "it is for other processes than those there are")
    for task in recommendation.active:
        if task not in standing.owners:
            return Objection("unknown_task", f"there is no task {task}")
    for tasks in recommendation.standby.values():
        for task in sorted(tasks):
            if task not in standing.owners:
                return Objection("unknown_task", f"there is no task {task}")
            if task not in standing.stateful:
                return Objection("stateless_standby", f"task {task} has no state to stand by for")
    for task in standing.tasks:
        if task not in recommendation.active:
            return Objection("missing_task", f"it leaves out task {task}")
    return None


def _configs(configs: Configs, recommendation: FollowedRecommendation) -> Objection | None:
    own = {
        "acceptable.recovery.lag": configs.acceptable_recovery_lag,
        "max.warmup.replicas": configs.max_warmup_replicas,
        "num.standby.replicas": configs.num_standby_replicas,
        "rack.aware.assignment.tags": list(configs.rack_aware_assignment_tags),
        "rack.aware.assignment.strategy": configs.rack_aware_assignment_strategy,
        "rack.aware.assignment.traffic_cost": configs.rack_aware_assignment_traffic_cost,
        "rack.aware.assignment.non_overlap_cost": configs.rack_aware_assignment_non_overlap_cost,
    }
    for name, value in own.items():
        if name in recommendation.config and (
            recommendation.config[name] != value
            or type(recommendation.config[name]) is not type(value)
        ):
            return Objection("other_configs", f"it was decided with another {name}")
    return None


def _recommended(standing: Standing, recommendation: FollowedRecommendation) -> Placement:
    standby = {p: set(tasks) for p, tasks in sorted(recommendation.standby.items())}
    return Placement(dict(sorted(recommendation.active.items())), standby)


def _changes_anything(
    standing: Standing, recommendation: FollowedRecommendation, placement: Placement
) -> bool:
    """Tell whether tasks move, copies are built, or another rebalance is wanted."""
    if recommendation.probing_needed:
        return True
    if any(
        owners and placement.active[task] not in owners for task, owners in standing.owners.items()
    ):
        return True
    return any(
        task not in standing.clients[process].previous_standby
        and task not in standing.clients[process].previous_active
        for process, tasks in placement.standby.items()
        for task in tasks
    )


def _probe_after_ms(
    configs: Configs, recommendation: FollowedRecommendation, patience: Patience, repeated: int
) -> int:
    """Say when to look again; twice as late each time that the same is followed."""
    after = recommendation.worthwhile_after_ms
    first = max(patience.follow_up_ms, 2 * patience.follow_up_ms if after is None else after)
    return min(first << min(repeated, _MOST_DOUBLINGS), configs.probing_rebalance_interval_ms)


def _decision(
    standing: Standing,
    reason: str,
    decision_id: str | None,
    placement: Placement,
    follow_up_ms: int | None,
) -> FollowerDecision:
    active: dict[ProcessId, list[TaskId]] = {process: [] for process in standing.clients}
    for task, process in placement.active.items():
        active[process].append(task)
    return FollowerDecision(
        reason=reason,
        decision_id=decision_id,
        active={process: tuple(sorted(tasks)) for process, tasks in active.items()},
        standby={p: tuple(sorted(placement.standby[p])) for p in standing.clients},
        follow_up_ms=follow_up_ms,
    )
