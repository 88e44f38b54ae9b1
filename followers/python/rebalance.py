"""Decide a rebalance as the leader of a Python application: functions without clocks or I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.followers.python.group_snapshot import GroupSnapshot, Members, process_of
from caughtup.followers.python.reports import application_state, decided_with
from caughtup.followers.python.topology import Topology
from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.following.follower import (
    FOLLOWED,
    GIVEN_UP,
    FollowerDecision,
    FollowerInputs,
    Patience,
    follow,
)
from caughtup.models.assignors.following.placement import ClientStates
from caughtup.models.assignors.following.recommendation import FollowedRecommendation
from caughtup.models.assignors.following.rules import find_objection
from caughtup.models.durations import counted
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.offsets import LATEST_OFFSET
from caughtup.models.partition_assignor.member_assignment import MemberAssignment, assign_group
from caughtup.models.partition_assignor.task_partitions import TaskPartitions
from caughtup.models.records.application_states import ApplicationStateRecord


@dataclass(frozen=True, slots=True)
class RebalanceDecision:
    """The outcome of a rebalance: assignments by member, decision, log line, record to publish."""

    assignments: Mapping[str, MemberAssignment]
    decision: FollowerDecision
    message: str
    record: ApplicationStateRecord


def decide_rebalance(
    topology: Topology,
    group: GroupSnapshot,
    own: ProcessId,
    inputs: FollowerInputs,
    patience: Patience,
    now_ms: int,
) -> RebalanceDecision:
    """Decide a rebalance by the follower's rules; return each member's assignment.

    ``own``: the leader's process, which asks for the next rebalance. ``now_ms``: its clock.
    """
    tasks, clients, scenario = group.tasks, group.clients, group.scenario
    decision, why = _decide(scenario, inputs, patience)
    lags = {client.process_id: client.lags for client in scenario.clients}
    probing_ms = None if decision.follow_up_ms is None else now_ms + decision.follow_up_ms
    # Like Kafka Streams for a public assignor, so that the service can check it in the same way.
    assignments = assign_group(
        clients, tasks, lags, _as_decision(decision), probing=(own, probing_ms), from_hash_map=True
    )
    message = f"{why}: {_summary(scenario, decision)}"
    record = application_state(scenario, topology, tasks, clients, decision, message)
    record.follower = decided_with(inputs, patience)
    return RebalanceDecision(assignments, decision, message, record)


def keep_in_place(
    tasks: TaskPartitions, members: Members, own: ProcessId, next_rebalance_ms: int
) -> dict[str, MemberAssignment]:
    """Assign every task to the member that reports to run it, when nothing can be decided.

    Other tasks go to the members with the fewest. Standbys stay. The member of the process ``own``
    asks for the next rebalance.
    """
    given: dict[str, list[TaskId]] = {member: [] for member in sorted(members)}
    reported = {m: dict(info.offset_sums) if info else {} for m, info in members.items()}
    orphans = []
    for task in tasks.sources:
        runners = [m for m in given if reported[m].get(task) == LATEST_OFFSET]
        if runners:
            given[runners[0]].append(task)
        else:
            orphans.append(task)
    for task in orphans:
        given[min(given, key=lambda member: (len(given[member]), member))].append(task)
    return {
        member: MemberAssignment(
            partitions=tuple(one for one, _ in pairs),
            active=tuple(task for _, task in pairs),
            standby={
                task: tasks.sources[task]
                for task in tasks.stateful
                if task in reported[member] and task not in active
            },
            next_rebalance_ms=next_rebalance_ms
            if process_of(member, members[member]) == own
            else None,
        )
        for member, active in given.items()
        for pairs in [sorted((one, task) for task in active for one in tasks.sources[task])]
    }


def _decide(
    scenario: Scenario, inputs: FollowerInputs, patience: Patience
) -> tuple[FollowerDecision, str]:
    """Apply the follower's rules; return the decision and its reason in a clause."""
    newest = inputs.newest
    why = ""
    if isinstance(newest, FollowedRecommendation):
        found = find_objection(ClientStates(scenario), newest, inputs.age_ms, patience.max_age_ms)
        if found is not None:
            why = f"did not follow {newest.decision_id}: {found.message}"
            newest = found
        else:
            why = f"followed {newest.decision_id}"
    else:
        why = newest.message
    decision = follow(
        scenario,
        newest,
        age_ms=inputs.age_ms,
        waited=inputs.waited,
        repeated=inputs.repeated,
        patience=patience,
    )
    if decision.reason == GIVEN_UP:
        why += f" after {inputs.waited} follow-ups; balanced without one"
    elif decision.reason != FOLLOWED:
        why += "; kept every task where it is until the next rebalance"
    return decision, why


def _as_decision(decision: FollowerDecision) -> Decision:
    return Decision(
        probing_rebalance_needed=decision.follow_up_ms is not None,
        clients={
            process: ClientDecision(
                active=active,
                standby=decision.standby[process],
                warmup=(),
                placed=tuple(sorted({*active, *decision.standby[process]})),
            )
            for process, active in decision.active.items()
        },
        explain=tuple,
    )


def _summary(scenario: Scenario, decision: FollowerDecision) -> str:
    moved = built = 0
    for client in scenario.clients:
        active, standby = decision.active[client.process_id], decision.standby[client.process_id]
        moved += sum(task not in client.previous_active for task in active)
        had = client.previous_active | client.previous_standby
        built += sum(task not in had for task in standby)
    begun = counted(built, "copy is begun", "copies are begun")
    return f"{counted(moved, 'task changes hands', 'tasks change hands')}, {begun}"
