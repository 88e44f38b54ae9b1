"""The partitions at each host, by which interactive queries are routed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.partition_assignor.clients import ClientMetadata
from caughtup.models.partition_assignor.task_partitions import TaskPartitions

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
