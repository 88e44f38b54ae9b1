"""Whether a recommendation holds for an application as its leader sees it now."""

from __future__ import annotations

from caughtup.models.assignment.configs import Configs
from caughtup.models.assignors.following.bounds import find_broken_bound
from caughtup.models.assignors.following.objection import Objection
from caughtup.models.assignors.following.placement import ClientStates, Placement
from caughtup.models.assignors.following.recommendation import FollowedRecommendation


def find_objection(
    states: ClientStates, recommendation: FollowedRecommendation, age_ms: int, max_age_ms: int
) -> Objection | None:
    """Return why a recommendation doesn't hold for an application; None when it does."""
    found = _names(states, recommendation) or _configs(states.scenario.configs, recommendation)
    if found:
        return found
    placement = recommended(recommendation)
    configs = states.scenario.configs
    extra = placement.extra_copies(configs.num_standby_replicas)
    if extra > configs.max_warmup_replicas:
        return Objection("too_many_copies", f"copies beyond num.standby.replicas: {extra}")
    for task, owners in states.owners.items():
        for owner in owners:
            at = (placement.active[task], *recommendation.found.get(task, ()))
            if owner not in at:
                return Objection(
                    "moved_since", f"task {task} is on {owner}, where it did not find the task"
                )
    for task, destination in placement.active.items():
        if destination not in states.owners[task] and destination not in states.may_run(task):
            return Objection("not_caught_up", f"task {task} is not caught up on {destination}")
    broken = find_broken_bound(states, placement)
    if broken:
        return broken
    if age_ms > max_age_ms and _changes_anything(states, recommendation, placement):
        seconds = age_ms // 1000
        return Objection(
            "too_old", f"it is at least {seconds} s old and would still change something"
        )
    return None


def _names(states: ClientStates, recommendation: FollowedRecommendation) -> Objection | None:
    """Hold the recommendation's processes and tasks against those there are."""
    if recommendation.standby.keys() != states.clients.keys():
        return Objection("other_processes", "it is for other processes than the live ones")
    for task in recommendation.active:
        if task not in states.owners:
            return Objection("unknown_task", f"there is no task {task}")
    for tasks in recommendation.standby.values():
        for task in sorted(tasks):
            if task not in states.owners:
                return Objection("unknown_task", f"there is no task {task}")
            if task not in states.stateful:
                return Objection("stateless_standby", f"task {task} has no state to stand by for")
    for task in states.tasks:
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


def recommended(recommendation: FollowedRecommendation) -> Placement:
    """Return a recommendation's placement."""
    standby = {p: set(tasks) for p, tasks in sorted(recommendation.standby.items())}
    return Placement(dict(sorted(recommendation.active.items())), standby)


def _changes_anything(
    states: ClientStates, recommendation: FollowedRecommendation, placement: Placement
) -> bool:
    """Return whether tasks move, copies are built, or another rebalance is wanted."""
    if recommendation.probing_needed:
        return True
    if any(
        owners and placement.active[task] not in owners for task, owners in states.owners.items()
    ):
        return True
    return any(
        task not in states.clients[process].previous_standby
        and task not in states.clients[process].previous_active
        for process, tasks in placement.standby.items()
        for task in tasks
    )
