"""Whether a recommendation holds for an application as its leader sees it now.

Bounds protect the application from any recommendation, whoever wrote it: caught-up copies stay, and
no process gets too many actives. The recommendations of ``minimal_movement`` are staged within
these bounds; on the way to balance it leaves actives where they are, but assigns no process more
than balance allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from caughtup.models.assignment.client_state import most_actives
from caughtup.models.assignment.configs import Configs
from caughtup.models.assignors.following.placement import UNKNOWN, ClientStates, Placement
from caughtup.models.assignors.following.recommendation import FollowedRecommendation, Objection
from caughtup.models.ids import ProcessId, TaskId


def find_objection(
    states: ClientStates, recommendation: FollowedRecommendation, age_ms: int, max_age_ms: int
) -> Objection | None:
    """Return why a recommendation doesn't hold for an application; None if it holds."""
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
            "too_old", f"it is at least {seconds} s old and would still move tasks or copies"
        )
    return None


def _names(states: ClientStates, recommendation: FollowedRecommendation) -> Objection | None:
    """Return an objection if the recommendation is for other processes or tasks than exist."""
    if recommendation.standby.keys() != states.clients.keys():
        return Objection("other_processes", "it is for other processes than those in the group")
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
    """Return a recommendation's placement, sorted by task and by process."""
    standby = {p: set(tasks) for p, tasks in sorted(recommendation.standby.items())}
    return Placement(dict(sorted(recommendation.active.items())), standby)


def _changes_anything(
    states: ClientStates, recommendation: FollowedRecommendation, placement: Placement
) -> bool:
    """Return whether the recommendation moves tasks, builds copies, or wants another rebalance."""
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


def find_broken_bound(states: ClientStates, placement: Placement) -> Objection | None:
    """Return the first bound that a placement of exactly the application's tasks breaks, or None.

    Each task keeps its standbys, as far as there are processes; only caught-up copies that are
    spare may be dropped; and no process is assigned actives beyond ``most_actives``, except those
    that no process with room can run. Source: ``caughtup.Bounds``.
    """
    return _standbys(states, placement) or _actives(states, placement)


def _standbys(states: ClientStates, placement: Placement) -> Objection | None:
    wanted = states.scenario.configs.num_standby_replicas
    least = min(wanted, len(states.clients) - 1)
    copies: dict[TaskId, list[ProcessId]] = {task: [] for task in states.stateful}
    for process, tasks in placement.standby.items():
        for task in tasks:
            copies[task].append(process)
    for task in states.scenario.stateful:
        standbys = copies[task]
        if len(standbys) < least:
            return Objection("too_few_standbys", f"task {task} has {len(standbys)} standbys")
        had = [
            process
            for process, client in states.clients.items()
            if task in client.previous_active or task in client.previous_standby
        ]
        ready = _ready(states, had, task)
        if _ready(states, (placement.active[task], *standbys), task) < min(ready, 1 + wanted):
            return Objection("loses_standby", f"it drops a caught-up copy of task {task}")
    return None


def _ready(states: ClientStates, processes: Iterable[ProcessId], task: TaskId) -> int:
    """Return the number of caught-up copies.

    The one that ran the task counts with an unknown lag, too.
    """
    return sum(
        states.caught_up(process, task)
        or (
            task in states.clients[process].previous_active
            and states.clients[process].lags.get(task, UNKNOWN) == UNKNOWN
        )
        for process in processes
    )


def _actives(states: ClientStates, placement: Placement) -> Objection | None:
    """Check the bound on actives, stateful and stateless apart, for processes that gain any."""
    threads = sum(client.capacity for client in states.clients.values())
    for tasks in (states.scenario.stateful, states.scenario.stateless):
        most = {
            process: most_actives(client.capacity, len(tasks), threads)
            for process, client in states.clients.items()
        }
        counts = Counter(placement.active[task] for task in tasks)
        room = frozenset(process for process in states.clients if counts[process] < most[process])
        for process in states.clients:
            if counts[process] <= most[process]:
                continue
            given = [
                task
                for task in tasks
                if placement.active[task] == process and process not in states.owners[task]
            ]
            needless = sum(_could_be_elsewhere(states, room, task) for task in given)
            if needless and counts[process] - (len(given) - needless) > most[process]:
                return Objection(
                    "too_many_actives",
                    f"it gives {process} more actives than {most[process]}: {counts[process]}",
                )
    return None


def _could_be_elsewhere(states: ClientStates, room: frozenset[ProcessId], task: TaskId) -> bool:
    able = states.may_run(task)
    return any(process in room or process in states.owners[task] for process in able)
