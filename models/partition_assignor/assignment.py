"""What surrounds the task assignor in a leader: subscriptions in, every member's assignment out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.partition_assignor.clients import clients_of
from caughtup.models.partition_assignor.end_offset_sums import sum_end_offsets, unknown_sums
from caughtup.models.partition_assignor.group_assignment import assign_group
from caughtup.models.partition_assignor.hosts import partitions_by_host
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.partition_assignor.rebalance import Rebalance
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, group_partitions
from caughtup.models.partition_assignor.task_placement import (
    PUBLIC_STICKY,
    assignor_in_charge,
    place_tasks,
)

_LONG, _LONG_SIGN, _LONG_MAX = 1 << 64, 1 << 63, (1 << 63) - 1
#: The first versions of assignments that say this.
_HOSTS_FROM, _STANDBY_HOSTS_FROM, _NEXT_REBALANCE_FROM = 2, 6, 7


def assign_partitions(
    rebalance: Rebalance,
    tasks: TaskPartitions | None = None,
    *,
    decide: Callable[[Scenario], Decision] | None = None,
) -> dict[str, MemberAssignment]:
    """Assign every member its partitions and tasks, as the leader of its release does.

    ``tasks`` are those of the rebalance's topology, where somebody made them before. ``decide`` is
    a public assignor that decides instead of the rebalance's. Returns the
    assignments by member id. Raises ScenarioError where Kafka's leader fails.
    Source: StreamsPartitionAssignor.assign.
    """
    if tasks is None:
        tasks = group_partitions(rebalance.subtopologies, rebalance.partitions)
    clients = clients_of(rebalance.members)
    sums = sum_end_offsets(rebalance, tasks.changelogs)
    ends = unknown_sums(tasks.changelogs) if sums is None else sums
    lags = {process: client.lags(ends) for process, client in clients.items()}
    assignor = assignor_in_charge(rebalance, lags_known=sums is not None)
    decision = place_tasks(rebalance, tasks, clients, lags, assignor, decide)
    members = assign_group(
        clients,
        tasks,
        lags,
        decision,
        probing=(rebalance.leader, _probing_ms(rebalance)),
        from_hash_map=assignor == PUBLIC_STICKY or decide is not None,
        release=rebalance.release,
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


def _probing_ms(rebalance: Rebalance) -> int | None:
    """Return when a probing rebalance is due, ms; None where that is what Kafka writes for never."""
    due = rebalance.now_ms + rebalance.configs.probing_rebalance_interval_ms
    due = (due + _LONG_SIGN) % _LONG - _LONG_SIGN
    return None if due == _LONG_MAX else due
