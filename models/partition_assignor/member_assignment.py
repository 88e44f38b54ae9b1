"""Each member's part of the decision, without tasks that another member has, and hosts' partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from caughtup.models.assignment.configs import NEWEST, Release
from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import ClientMetadata
from caughtup.models.partition_assignor.task_partitions import (
    TaskPartitions,
    in_hash_map_orders,
    in_hash_order,
)
from caughtup.models.partition_assignor.thread_assignment import ThreadAssignment, ThreadTasks

#: ``host:port`` → source partitions, sorted.
PartitionsByHost = Mapping[str, Sequence[TopicPartition]]

_NAME = "[0-9A-Za-z.%:-]*"
_END_POINT = re.compile(rf".*?\[?({_NAME})\]?:([0-9]+)", re.ASCII)
_INT_MAX = (1 << 31) - 1


def parse_end_point(text: str) -> tuple[str, int] | None:
    """Read a process's ``application.server`` as Kafka does; None if it is empty.

    Anything before the host, such as a scheme, is ignored. Raises ValueError where Kafka's leader
    fails: without a host or a port. Source: HostInfo.buildFromEndpoint.
    """
    if not text.strip():
        return None
    match = _END_POINT.fullmatch(text)
    if match is None or int(match[2]) > _INT_MAX:
        raise ValueError(f"{text!r:.80} is not a host and a port")
    return match[1], int(match[2])


def partitions_by_host(
    clients: Mapping[ProcessId, ClientMetadata], decision: Decision, tasks: TaskPartitions
) -> tuple[PartitionsByHost, PartitionsByHost]:
    """Return the source partitions at each end point, for actives and for standbys.

    They follow from the decision, also for tasks that another member has yet to give up. Of
    processes at the same end point only the last one in the leader's HashMap counts; ``clients``
    are in the order in which they were added to that. Source:
    StreamsPartitionAssignor.populatePartitionsByHostMaps.
    """
    active: dict[str, Sequence[TopicPartition]] = {}
    standby: dict[str, Sequence[TopicPartition]] = {}
    processes = list(clients)
    for place in ClientHashOrder(processes, 0).of(range(len(processes))):
        process = processes[place]
        end_point = clients[process].end_point
        if end_point is not None:
            host = f"{end_point[0]}:{end_point[1]}"
            active[host] = _sources(decision.clients[process].active, tasks)
            standby[host] = _sources(decision.clients[process].standby, tasks)
    return active, standby


def _sources(given: Iterable[TaskId], tasks: TaskPartitions) -> Sequence[TopicPartition]:
    return sorted(one for task in given for one in tasks.sources[task])


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """A member's assignment.

    ``partitions`` are those that it reads, sorted, and ``active`` has the task of each. ``standby``
    has each standby's source partitions, sorted. ``next_rebalance_ms`` is when the member requests
    the next rebalance, on the leader's clock; 0 for at once and None for never. ``held_back`` are
    the actives that it doesn't get yet because another member has their partitions; they aren't on
    the wire. The hosts are those of all members.
    """

    partitions: tuple[TopicPartition, ...]
    active: tuple[TaskId, ...]
    standby: Mapping[TaskId, tuple[TopicPartition, ...]]
    next_rebalance_ms: int | None
    held_back: tuple[TaskId, ...] = ()
    active_by_host: PartitionsByHost = field(default_factory=dict)
    standby_by_host: PartitionsByHost = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return the assignment as values that JSON can encode; hosts only if there are any."""
        written: dict[str, object] = {
            "partitions": _pairs(self.partitions),
            "active": [str(task) for task in self.active],
            "standby": {str(task): _pairs(own) for task, own in sorted(self.standby.items())},
            "next_rebalance_ms": self.next_rebalance_ms,
            "error_code": 0,
        }
        if self.active_by_host:
            written["partitions_by_host"] = _by_host(self.active_by_host)
            written["standby_partitions_by_host"] = _by_host(self.standby_by_host)
        return written


def assign_group(
    clients: Mapping[ProcessId, ClientMetadata],
    tasks: TaskPartitions,
    lags: Mapping[ProcessId, Mapping[TaskId, int]],
    decision: Decision,
    *,
    probing: tuple[ProcessId | None, int | None],
    from_hash_map: bool = False,
    release: Release = NEWEST,
) -> dict[str, MemberAssignment]:
    """Return every member's part of the decision for its process, by member id.

    ``lags`` are each client's of each stateful task, in offsets. ``probing`` is the leader's
    process, and the time (ms) at which it asks for a rebalance if a probing rebalance is needed;
    None for never. ``from_hash_map``: the assignor is a public one, which returns tasks in a
    HashMap; Kafka's own return TreeSets. ``release`` is the leader's. The result lacks hosts.
    Raises ScenarioError where Kafka's leader fails. Source:
    StreamsPartitionAssignor.computeNewAssignment.
    """
    readers = tasks.readers
    owned = frozenset(one for client in clients.values() for one in client.owner)
    leader, probing_ms = probing
    members: dict[str, MemberAssignment] = {}
    for process, client in clients.items():
        active, standby = _assign_threads(
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


def _assign_threads(
    threads: ThreadAssignment,
    decided: ClientDecision,
    tasks: TaskPartitions,
    *,
    from_hash_map: bool,
    release: Release,
) -> tuple[ThreadTasks, ThreadTasks]:
    """Assign a client's tasks to its threads: stateful actives, standbys, then stateless actives.

    Before 3.2 actives were assigned regardless of a thread's standbys, and standbys likewise.
    """
    given = in_hash_map_orders(decided) if from_hash_map else (decided.active, decided.standby)
    stateful = [task for task in given[0] if task in tasks.changelogs]
    stateless = [task for task in given[0] if task not in tasks.changelogs]
    if release < Release.V3_2:
        return (
            threads.assign_apart(in_hash_order(stateful, release), sorted(stateless)),
            threads.assign_apart(given[1], ()),
        )
    active = threads.assign_stateful(in_hash_order(stateful))
    standby = threads.assign_stateful(given[1])
    for consumer, own in threads.assign_stateless(in_hash_order(stateless)).items():
        active[consumer] += own
    return active, standby


def assign_members(
    client: ClientMetadata,
    active: ThreadTasks,
    standby: ThreadTasks,
    tasks: TaskPartitions,
    was_standby: frozenset[TaskId],
    owned: frozenset[TopicPartition],
    probing_ms: int | None,
    release: Release = NEWEST,
) -> dict[str, MemberAssignment]:
    """Return the assignments of a client's consumers.

    An active is held back while another consumer, even of the same client, owns a partition of it.
    If it has state and the client already has its standby (``was_standby``), the consumer keeps the
    standby meanwhile, so that the state isn't closed; before 3.5.2 it gets one in any case.
    ``owned`` are the partitions that any consumer owns. A consumer with a task held back asks for
    the next rebalance at once. ``probing_ms`` is when the client shall ask for a probing rebalance:
    its first consumer does, unless a task is held back from it, and then none does.

    Source: StreamsPartitionAssignor.addClientAssignments.
    """
    given: dict[str, MemberAssignment] = {}
    for consumer in client.consumers:
        held_back = {
            task
            for task in active[consumer]
            if any(
                one in owned and client.owner.get(one) != consumer for one in tasks.sources[task]
            )
        }
        pairs = sorted(
            (one, task)
            for task in active[consumer]
            if task not in held_back
            for one in tasks.sources[task]
        )
        meanwhile = held_back & tasks.changelogs.keys()
        if release >= Release.V3_5_2:
            meanwhile &= was_standby
        followed = {*standby[consumer]} | meanwhile
        given[consumer] = MemberAssignment(
            partitions=tuple(one for one, _ in pairs),
            active=tuple(task for _, task in pairs),
            standby={task: tasks.sources[task] for task in sorted(followed)},
            next_rebalance_ms=0 if held_back else probing_ms,
            held_back=tuple(sorted(held_back)),
        )
        probing_ms = None
    return given


def _pairs(partitions: Iterable[TopicPartition]) -> list[list[str | int]]:
    return [[one.topic, one.partition] for one in partitions]


def _by_host(hosts: Mapping[str, Sequence[TopicPartition]]) -> dict[str, list[list[str | int]]]:
    return {host: _pairs(own) for host, own in sorted(hosts.items())}
