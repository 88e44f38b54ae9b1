"""Exact mode, member by member: what each should have been given, and where the wire differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from caughtup.models.assignment.compact import CompactTask
from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.decisions.inputs.gathering import members_of
from caughtup.models.groups.generation import StreamsClient, StreamsGeneration, StreamsMember
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.member_assignment import MemberAssignment, assign_group
from caughtup.models.partition_assignor.rebalance import ClientMetadata, clients_of
from caughtup.models.partition_assignor.task_partitions import TaskPartitions

#: What stands for the probing rebalance's time: any but 0. When it is due, the leader's clock says.
_PROBING_MS = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a member's assignment differs from what the leader should have given it.

    ``certain`` is false where it may come from lags that aren't known exactly: tasks change places
    between the threads of one process only.
    """

    text: str
    certain: bool


def compare_members(
    generation: StreamsGeneration,
    scenario: Scenario,
    tasks: Mapping[TaskId, CompactTask],
    decision: Decision,
    ends: Mapping[TaskId, EndOffsetSum | None],
    *,
    from_hash_map: bool = False,
) -> list[Difference]:
    """List where members were given something else than the decision means for them.

    ``tasks`` are the scenario's with their partitions, and ``ends`` the end offset sums that its lags
    were made of. ``from_hash_map`` as for ``assign_group``: a public assignor decided. Raises
    ScenarioError where the sources of the members' tasks aren't known.
    Source: StreamsPartitionAssignor.computeNewAssignment.
    """
    clients = clients_of(members_of(generation))
    expected = assign_group(
        clients,
        _task_partitions(tasks),
        {client.process_id: client.lags for client in scenario.clients},
        decision,
        probing=(_leading_process(generation), _PROBING_MS),
        from_hash_map=from_hash_map,
        release=scenario.release,
    )
    owned = {task for one in generation.members() for task in generation.tasks_of(one.owned)}
    differences: list[Difference] = []
    for process, client in generation.clients.items():
        within_process = client.capacity > 1 and not differs_as_a_whole(
            client, decision.clients[process], owned
        )
        certain = not (within_process and _lags_may_tie(clients[process], ends))
        differences += [
            Difference(text, certain)
            for member in client.members
            for text in _differences(member, expected[member.member_id])
        ]
    return differences


def _task_partitions(tasks: Mapping[TaskId, CompactTask]) -> TaskPartitions:
    return TaskPartitions(
        sources={task: one.sources for task, one in tasks.items()},
        changelogs={task: one.changelogs for task, one in tasks.items() if one.stateful},
    )


def _leading_process(generation: StreamsGeneration) -> ProcessId | None:
    """Name the leader's process; None where the leader couldn't be read."""
    leaders = (one.process for one in generation.members() if one.member_id == generation.leader)
    return next(leaders, None)


def differs_as_a_whole(
    client: StreamsClient, decided: ClientDecision, owned: Iterable[TaskId]
) -> bool:
    """Return whether a process has other tasks than were decided, whatever its threads have.

    An active may be missing that somebody owned yet, and may be followed meanwhile.
    """
    active, standby = set(decided.active), set(decided.standby)
    missing = active - client.active()
    return bool(
        client.active() - active
        or missing.difference(owned)
        or standby - client.standby()
        or client.standby() - standby - missing
    )


def _lags_may_tie(client: ClientMetadata, ends: Mapping[TaskId, EndOffsetSum | None]) -> bool:
    """Return whether it isn't known in which order a thread's tasks lag.

    A thread with too many tasks keeps those that lag least.
    """
    for reported in client.reported.values():
        bounds: list[tuple[int, int]] = []
        for task in reported:
            end = ends.get(task)
            if task in ends and end is None:
                return True
            if end is not None:
                bounds.append(end.lags(client.offset_sums[task]))
        bounds.sort()
        for (low, high), (other_low, other_high) in pairwise(bounds):
            if other_low <= high and not low == high == other_low == other_high:
                return True
    return False


def _differences(member: StreamsMember, wanted: MemberAssignment) -> list[str]:
    """Describe where a member's assignment differs, in one line each."""
    given = member.assignment
    if given is None:
        return [f"{member.client_id} should have an assignment"]
    lines = [
        f"{member.client_id} {verb} {task} as {role}"
        for role, should, has in (
            ("active", set(wanted.active), set(given.active)),
            ("standby", set(wanted.standby), set(given.standby)),
        )
        for verb, tasks in (("should have", should - has), ("should not have", has - should))
        for task in sorted(tasks)
    ]
    asks, should_ask = _asks(given.next_rebalance_ms), _asks(wanted.next_rebalance_ms)
    if asks != should_ask:
        lines.append(f"{member.client_id} should ask for {should_ask}, but asks for {asks}")
    return lines


def _asks(next_rebalance_ms: int | None) -> str:
    """Describe what a member asks for at that time."""
    if next_rebalance_ms is None:
        return "no rebalance"
    return "a probing rebalance" if next_rebalance_ms else "a rebalance at once"
