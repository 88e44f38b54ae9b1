"""From what was decided for the processes to what each of their members is given."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.releases import NEWEST, Release
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.clients import Client
from caughtup.models.partition_assignor.member_assignment import MemberAssignment, assign_members
from caughtup.models.partition_assignor.task_orders import in_hash_map_orders, in_hash_order
from caughtup.models.partition_assignor.task_partitions import TaskPartitions
from caughtup.models.partition_assignor.thread_assignment import ThreadAssignment, ThreadTasks


def assign_group(
    clients: Mapping[ProcessId, Client],
    tasks: TaskPartitions,
    lags: Mapping[ProcessId, Mapping[TaskId, int]],
    decision: Decision,
    *,
    probing: tuple[ProcessId | None, int | None],
    from_hash_map: bool = False,
    release: Release = NEWEST,
) -> dict[str, MemberAssignment]:
    """Assign every member its part of what was decided for its process.

    ``lags`` are each client's of each task with state, in offsets. If a probing rebalance is
    needed, the process in ``probing``, the leader's, asks for it at that time (ms); nobody does
    if it is None.
    ``from_hash_map``: the assignor is a public one, which leaves a HashMap of tasks; Kafka's own
    leave TreeSets. ``release`` is the leader's. Hosts are left out. Raises ScenarioError where Kafka's leader fails.
    Source: StreamsPartitionAssignor.computeNewAssignment.
    """
    readers = tasks.readers
    owned = frozenset(one for client in clients.values() for one in client.owner)
    leader, probing_ms = probing
    members: dict[str, MemberAssignment] = {}
    for process, client in clients.items():
        active, standby = _deal(
            ThreadAssignment(client, lags[process]),
            decision.clients[process],
            tasks,
            from_hash_map=from_hash_map,
            release=release,
        )
        _, was_standby = client.previous_tasks(readers)
        probes = decision.probing_rebalance_needed and process == leader
        members |= assign_members(
            client,
            active,
            standby,
            tasks,
            was_standby,
            owned,
            probing_ms if probes else None,
            release,
        )
    return members


def _deal(
    threads: ThreadAssignment,
    decided: ClientDecision,
    tasks: TaskPartitions,
    *,
    from_hash_map: bool,
    release: Release,
) -> tuple[ThreadTasks, ThreadTasks]:
    """Deal a client's tasks to its threads: actives with state, standbys, then all the rest.

    Before 3.2 actives were dealt whatever standbys a thread has, and standbys likewise.
    """
    given = in_hash_map_orders(decided) if from_hash_map else (decided.active, decided.standby)
    stateful = [task for task in given[0] if task in tasks.changelogs]
    stateless = [task for task in given[0] if task not in tasks.changelogs]
    if release < Release.V3_2:
        return (
            threads.deal_apart(in_hash_order(stateful, release), sorted(stateless)),
            threads.deal_apart(given[1], ()),
        )
    active = threads.deal_stateful(in_hash_order(stateful))
    standby = threads.deal_stateful(given[1])
    for consumer, own in threads.deal_stateless(in_hash_order(stateless)).items():
        active[consumer] += own
    return active, standby
