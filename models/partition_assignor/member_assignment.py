"""What each member is given: its tasks, but for those that another member still has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caughtup.models.assignment.releases import NEWEST, Release
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.partition_assignor.clients import Client
from caughtup.models.partition_assignor.hosts import PartitionsByHost
from caughtup.models.partition_assignor.task_partitions import TaskPartitions
from caughtup.models.partition_assignor.thread_assignment import ThreadTasks


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What a member's assignment says.

    ``partitions`` are those that it shall read, sorted, and ``active`` has the task of each. Of
    ``standby`` tasks the source partitions are given, sorted. ``next_rebalance_ms`` is when the
    member shall ask for the next rebalance on the leader's clock, 0 for at once and None for
    never. ``held_back`` are the actives that it isn't given yet because another member has their
    partitions; they aren't on the wire. The hosts are those of all members.
    """

    partitions: tuple[TopicPartition, ...]
    active: tuple[TaskId, ...]
    standby: Mapping[TaskId, tuple[TopicPartition, ...]]
    next_rebalance_ms: int | None
    held_back: tuple[TaskId, ...] = ()
    active_by_host: PartitionsByHost = field(default_factory=dict)
    standby_by_host: PartitionsByHost = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Write the assignment as JSON has it; hosts only if there are any."""
        written: dict[str, Any] = {
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


def assign_members(
    client: Client,
    active: ThreadTasks,
    standby: ThreadTasks,
    tasks: TaskPartitions,
    was_standby: frozenset[TaskId],
    owned: frozenset[TopicPartition],
    probing_ms: int | None,
    release: Release = NEWEST,
) -> dict[str, MemberAssignment]:
    """Return a client's consumers their tasks.

    An active is held back as long as a partition of it is owned by any other consumer, one of the
    same client too. If it has state and the client already followed it (``was_standby``), the
    consumer goes on following it meanwhile, so that the state isn't closed; before 3.5.2 it
    follows it in any case. ``owned`` are the
    partitions that anybody owns. A consumer with a task held back asks for the next rebalance at
    once. ``probing_ms`` is when the client shall ask for a probing rebalance: its first consumer
    does, unless something is held back from it, and then nobody does.

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
