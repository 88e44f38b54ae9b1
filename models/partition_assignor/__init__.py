"""What surrounds the task assignor in a leader: subscriptions in, every member's assignment out."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.assignors.decision import ClientDecision
from caughtup.models.partition_assignor.clients import clients_of
from caughtup.models.partition_assignor.end_offset_sums import sum_end_offsets, unknown_sums
from caughtup.models.partition_assignor.hosts import partitions_by_host
from caughtup.models.partition_assignor.member_assignment import MemberAssignment, assign_members
from caughtup.models.partition_assignor.rebalance import Rebalance
from caughtup.models.partition_assignor.task_orders import in_hash_map_orders, in_hash_order
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, group_partitions
from caughtup.models.partition_assignor.task_placement import (
    PUBLIC_STICKY,
    assignor_in_charge,
    place_tasks,
)
from caughtup.models.partition_assignor.thread_assignment import ThreadAssignment, ThreadTasks

_LONG, _LONG_SIGN, _LONG_MAX = 1 << 64, 1 << 63, (1 << 63) - 1
#: The first versions of assignments that say this.
_HOSTS_FROM, _STANDBY_HOSTS_FROM, _NEXT_REBALANCE_FROM = 2, 6, 7


def assign_partitions(rebalance: Rebalance) -> dict[str, MemberAssignment]:
    """Assign every member its partitions and tasks, as the leader of Kafka 4.3 does.

    Returns the assignments by member id. Raises ScenarioError where Kafka's leader fails.
    Source: StreamsPartitionAssignor.assign.
    """
    tasks = group_partitions(rebalance.subtopologies, rebalance.partitions)
    clients = clients_of(rebalance.members)
    sums = sum_end_offsets(rebalance, tasks.changelogs)
    ends = unknown_sums(tasks.changelogs) if sums is None else sums
    lags = {process: client.lags(ends) for process, client in clients.items()}
    assignor = assignor_in_charge(rebalance, lags_known=sums is not None)
    decision = place_tasks(rebalance, tasks, clients, lags, assignor)

    readers = tasks.readers()
    owned = frozenset(one for client in clients.values() for one in client.owner)
    probing_ms = _probing_ms(rebalance) if decision.probing_rebalance_needed else None
    members: dict[str, MemberAssignment] = {}
    for process, client in clients.items():
        active, standby = _deal(
            ThreadAssignment(client, lags[process]),
            decision.clients[process],
            tasks,
            from_hash_map=assignor == PUBLIC_STICKY,
        )
        _, was_standby = client.previous_tasks(readers)
        members |= assign_members(
            client,
            active,
            standby,
            tasks,
            was_standby,
            owned,
            probing_ms if process == rebalance.leader else None,
        )
    active_by_host, standby_by_host = partitions_by_host(clients, decision, tasks)
    version = min(member.version for member in rebalance.members)
    return {
        member_id: replace(
            given,
            next_rebalance_ms=given.next_rebalance_ms if version >= _NEXT_REBALANCE_FROM else None,
            active_by_host=active_by_host if version >= _HOSTS_FROM else {},
            standby_by_host=standby_by_host if version >= _STANDBY_HOSTS_FROM else {},
        )
        for member_id, given in members.items()
    }


def _deal(
    threads: ThreadAssignment,
    decided: ClientDecision,
    tasks: TaskPartitions,
    *,
    from_hash_map: bool,
) -> tuple[ThreadTasks, ThreadTasks]:
    """Deal a client's tasks to its threads: actives with state, standbys, then all the rest.

    ``from_hash_map``: the assignor is a public one, which leaves a HashMap of tasks; Kafka's own
    leave TreeSets. Source: StreamsPartitionAssignor.computeNewAssignment.
    """
    given = in_hash_map_orders(decided) if from_hash_map else (decided.active, decided.standby)
    stateful = [task for task in given[0] if task in tasks.changelogs]
    stateless = [task for task in given[0] if task not in tasks.changelogs]
    active = threads.deal_stateful(in_hash_order(stateful))
    standby = threads.deal_stateful(given[1])
    for consumer, own in threads.deal_stateless(in_hash_order(stateless)).items():
        active[consumer] += own
    return active, standby


def _probing_ms(rebalance: Rebalance) -> int | None:
    """Tell when a probing rebalance is due, ms; None where that is what Kafka writes for never."""
    due = rebalance.now_ms + rebalance.configs.probing_rebalance_interval_ms
    due = (due + _LONG_SIGN) % _LONG - _LONG_SIGN
    return None if due == _LONG_MAX else due
