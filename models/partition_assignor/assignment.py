"""The whole assignment by a leader: subscriptions in, every member's assignment out.

Source: StreamsPartitionAssignor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.racks import TaskReplicas, find_racks
from caughtup.models.assignment.scenario import Client, Scenario
from caughtup.models.assignors.kafka.public_sticky.assignor import decide_public_sticky
from caughtup.models.assignors.kafka.sticky import decide_fallback_prior, decide_sticky
from caughtup.models.assignors.registry import decide
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import UNKNOWN_OFFSET_SUM, sum_offsets
from caughtup.models.partition_assignor.member_assignment import (
    MemberAssignment,
    assign_group,
    partitions_by_host,
)
from caughtup.models.partition_assignor.rebalance import ClientMetadata, Rebalance, clients_of
from caughtup.models.partition_assignor.task_partitions import (
    TaskPartitions,
    group_partitions,
    leader_orders,
)

_LONG, _LONG_SIGN, _LONG_MAX = 1 << 64, 1 << 63, (1 << 63) - 1
#: The first versions of assignments with these fields.
_HOSTS_FROM, _STANDBY_HOSTS_FROM, _NEXT_REBALANCE_FROM = 2, 6, 7
PUBLIC_STICKY = "public_sticky"
#: Assignors that ignore lags.
_NEEDS_NO_LAGS = frozenset({"sticky", PUBLIC_STICKY})


def assign_partitions(
    rebalance: Rebalance,
    tasks: TaskPartitions | None = None,
    *,
    decide: Callable[[Scenario], Decision] | None = None,
) -> dict[str, MemberAssignment]:
    """Return every member's assignment, by member id, as the leader of its release makes it.

    ``tasks`` are those of the rebalance's topology, if they are already grouped. ``decide`` is a
    public assignor that decides instead of the rebalance's. Raises ScenarioError where Kafka's
    leader fails. Source: StreamsPartitionAssignor.assign.
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
    """Return the time of the next probing rebalance, ms.

    None if that is Kafka's value for never.
    """
    due = rebalance.now_ms + rebalance.configs.probing_rebalance_interval_ms
    due = (due + _LONG_SIGN) % _LONG - _LONG_SIGN
    return None if due == _LONG_MAX else due


def assignor_in_charge(rebalance: Rebalance, *, lags_known: bool) -> str:
    """Return the name of the assignor that decides.

    Without end offsets it is the fallback assignor, with which clients keep what they had, unless
    the configured one ignores lags. Source: StreamsPartitionAssignor.createTaskAssignor.
    """
    if lags_known or rebalance.assignor in _NEEDS_NO_LAGS:
        return rebalance.assignor
    return "fallback_prior"


def place_tasks(
    rebalance: Rebalance,
    tasks: TaskPartitions,
    clients: Mapping[ProcessId, ClientMetadata],
    lags: Mapping[ProcessId, Mapping[TaskId, int]],
    assignor: str,
    other: Callable[[Scenario], Decision] | None = None,
) -> Decision:
    """Return the decision which process gets which tasks.

    ``clients`` are in the order in which the leader met them. ``other`` decides instead of
    ``assignor`` if it is given. Raises ScenarioError as the assignors do.
    """
    scenario = assignor_scenario(rebalance, tasks, clients, lags, assignor)
    if other is not None:
        return other(scenario)
    arrival = tuple(clients)
    if assignor == PUBLIC_STICKY:
        return decide_public_sticky(scenario, arrival=arrival)
    if assignor == "sticky":
        return decide_sticky(scenario, leader_orders(arrival, tasks, rebalance.release))
    if assignor == "fallback_prior":
        return decide_fallback_prior(scenario, leader_orders(arrival, tasks, rebalance.release))
    return decide(scenario)


def assignor_scenario(
    rebalance: Rebalance,
    tasks: TaskPartitions,
    clients: Mapping[ProcessId, ClientMetadata],
    lags: Mapping[ProcessId, Mapping[TaskId, int]],
    assignor: str,
) -> Scenario:
    """Return the scenario from which an assignor decides."""
    readers = tasks.readers
    given: list[Client] = []
    for process, client in sorted(clients.items()):
        active, standby = client.previous_tasks(readers)
        given.append(
            Client(
                process_id=process,
                capacity=client.capacity,
                previous_active=active,
                previous_standby=standby,
                lags=lags[process],
                tags=client.tags,
                # The public interface has one rack per process, Kafka's own all its consumers'.
                rack=client.racks[0] if assignor == PUBLIC_STICKY else client.rack,
            )
        )
    task_replicas = None
    if rebalance.configs.rack_aware_assignment_strategy != "none":
        changelogs = {task: tasks.changelogs.get(task, ()) for task in tasks.sources}
        task_replicas = TaskReplicas(tasks.sources, changelogs, rebalance.replicas)
    return Scenario(
        name=rebalance.name,
        assignor=assignor,
        configs=rebalance.configs,
        stateful=tasks.stateful,
        stateless=tasks.stateless,
        clients=tuple(given),
        task_replicas=task_replicas,
        racks=find_racks(task_replicas, rebalance.configs, [client.rack for client in given]),
        release=rebalance.release,
    )


def source_changelog_topics(rebalance: Rebalance) -> frozenset[str]:
    """Return the source topics from which stores are restored."""
    return frozenset(
        topic for one in rebalance.subtopologies.values() for topic in one.source_changelogs
    )


def sum_end_offsets(
    rebalance: Rebalance, changelogs: Mapping[TaskId, Sequence[TopicPartition]]
) -> Mapping[TaskId, int] | None:
    """Return the sum of the end offsets of each task's changelogs; None if they are unavailable.

    A changelog that was just created counts as empty. Where a source topic serves as the changelog,
    the end is the group's committed offset, because nothing beyond that is in the store yet
    (KAFKA-10085); without a commit it is 0. A sum beyond Java's long stays at its maximum. Without
    any partition to ask for, the sums are always available.

    ``changelogs`` has the changelog partitions of the stateful tasks. Raises ScenarioError
    ``missing_field`` for a changelog partition without an end offset. Source:
    StreamsPartitionAssignor.populateClientStatesMap and computeEndOffsetSumsByTask.
    """
    restored_from = source_changelog_topics(rebalance)
    ends, committed = rebalance.end_offsets, rebalance.committed
    sums: dict[TaskId, int] = {}
    for task, partitions in changelogs.items():
        offsets: list[int] = []
        for partition in partitions:
            if partition.topic in restored_from:
                if committed is None:
                    return None
                offsets.append(committed.get(partition, 0))
            elif partition.topic not in rebalance.new_topics:
                if ends is None:
                    return None
                if partition not in ends:
                    raise ScenarioError("missing_field", f"end_offsets.{partition}: is missing")
                offsets.append(ends[partition])
        sums[task] = sum_offsets(offsets)
    return sums


def unknown_sums(changelogs: Mapping[TaskId, Sequence[TopicPartition]]) -> Mapping[TaskId, int]:
    """Return the unknown sums with which Kafka decides without end offsets."""
    return dict.fromkeys(changelogs, UNKNOWN_OFFSET_SUM)
