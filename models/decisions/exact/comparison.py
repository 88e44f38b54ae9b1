"""Exact mode: a leader's decision made again, and compared with every member's assignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

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
from caughtup.models.records.fields import ABSENT, or_absent
from caughtup.models.records.recommendations import LeaderRecord, Result, WitnessRecord

#: Kafka's default assignor: its name in scenarios, and its class.
KAFKAS = "high_availability"
ASSIGNOR = "HighAvailabilityTaskAssignor"
#: The classes in Kafka 4.3 of the assignors that a leader may have, by their names in scenarios.
CLASSES: Mapping[str, str] = {
    KAFKAS: ASSIGNOR,
    "sticky": "LegacyStickyTaskAssignor",
    "public_sticky": "StickyTaskAssignor",
    "fallback_prior": "FallbackPriorTaskAssignor",
}
#: The name of followers' assignor.
FOLLOWER = "FollowingTaskAssignor"
#: The most doubts or differences that are listed; the others are counted.
_MOST_LISTED = 20


class ExactResult(NamedTuple):
    """The result of comparing a leader's decision, and that decision if it is known."""

    leader: LeaderRecord
    decision: Decision | None

    @property
    def plans(self) -> bool:
        """Whether the leader planned the decision's movements; False if it followed a recommendation."""
        return self.leader.result == "match" and self.leader.assignor != FOLLOWER


def compared(
    result: Result,
    why: str,
    assignor: str = ASSIGNOR,
    told: str = "",
    witness: WitnessRecord | None = None,
) -> LeaderRecord:
    """Return the record of a comparison with a leader's decision.

    ``told``: the outcome that the application's follower reported, "" without one.
    """
    identical: bool | Literal["unknown"] = "unknown"
    if result in ("match", "mismatch"):
        identical = result == "match"
    return LeaderRecord(assignor, identical, result, why, told or ABSENT, or_absent(witness))


def listed(texts: Sequence[str]) -> str:
    """Return the texts joined, after the first ``_MOST_LISTED`` only their number."""
    more = len(texts) - _MOST_LISTED
    return "; ".join([*texts[:_MOST_LISTED], *([f"and {more:,} more"] if more > 0 else [])])


#: A placeholder for the time of a probing rebalance, which is by the leader's clock: any but 0.
_PROBING_MS = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between a member's assignment and the expected one.

    ``certain`` is false if inexact lags may cause it: then tasks differ between the threads of one
    process only.
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
    """Return the differences between members' assignments and those that follow from a decision.

    ``tasks`` are the scenario's with their partitions; ``ends`` are the end offset sums of its lags.
    ``from_hash_map`` as for ``assign_group``: a public assignor decided. Raises ScenarioError if
    the source partitions of the members' tasks are unknown.
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
        within_process = client.capacity > 1 and not process_differs(
            client, decision.clients[process], owned
        )
        certain = not (within_process and _is_order_unknown(clients[process], ends))
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
    """Return the leader's process; None if the leader couldn't be read."""
    leaders = (one.process for one in generation.members() if one.member_id == generation.leader)
    return next(leaders, None)


def process_differs(
    client: StreamsClient, decided: ClientDecision, owned: Iterable[TaskId]
) -> bool:
    """Return whether a process as a whole has other tasks than were decided."""
    return bool(misplaced_tasks(client, decided, owned))


def misplaced_tasks(
    client: StreamsClient, decided: ClientDecision, owned: Iterable[TaskId]
) -> set[TaskId]:
    """Return the tasks of which a process as a whole has another copy than was decided.

    An active that another member has yet to revoke may be missing, or be a standby meanwhile.
    """
    active, standby = set(decided.active), set(decided.standby)
    has_active, has_standby = client.active(), client.standby()
    missing = active - has_active
    return (
        (has_active - active)
        | missing.difference(owned)
        | (standby - has_standby)
        | (has_standby - standby - missing)
    )


def _is_order_unknown(client: ClientMetadata, ends: Mapping[TaskId, EndOffsetSum | None]) -> bool:
    """Return whether the order of a thread's tasks by lag is unknown.

    A thread with too many tasks keeps those with the least lag.
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
    """Return the differences of a member's assignment, in one line each."""
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
    """Return the rebalance that a member asks for, in words."""
    if next_rebalance_ms is None:
        return "no rebalance"
    return "a probing rebalance" if next_rebalance_ms else "a rebalance at once"
