"""A rebalance as its leader sees it before it decides: subscriptions, and a client for each process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from caughtup.models.assignment.configs import NEWEST, Configs, Release
from caughtup.models.assignors.java.strings import in_hash_map_order, utf16
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET, task_lag

#: The newest version of subscriptions in Kafka 4.3 (``LATEST_SUPPORTED_VERSION``).
LATEST_VERSION = 11


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """One consumer, which is one stream thread, and its subscription.

    ``end_point`` is its process's ``application.server`` as host and port, None without one.
    ``owned`` are the source partitions that it has. ``offset_sums`` has, for each stateful task
    found on disk or in memory, the sum of its changelog offsets, or -2 for a running active and -3
    if unknown. ``version`` is that of its subscription.
    """

    member_id: str
    process: ProcessId
    owned: tuple[TopicPartition, ...] = ()
    offset_sums: Mapping[TaskId, int] = field(default_factory=dict)
    end_point: tuple[str, int] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    version: int = LATEST_VERSION


@dataclass(frozen=True, slots=True)
class TopicsInfo:
    """The topics of a subtopology; its tasks are stateful if it has any kind of changelog.

    ``sources`` are all topics that it reads, repartition topics included. ``changelogs`` are those
    of its stores, and ``source_changelogs`` are sources from which stores are restored. Source:
    Kafka's internal TopicsInfo.
    """

    sources: tuple[str, ...]
    changelogs: tuple[str, ...] = ()
    source_changelogs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A valid rebalance. ``members`` are in the order in which the coordinator listed them.

    ``now_ms`` is the leader's clock and ``leader`` its process. ``partitions`` has the number of
    partitions of each source topic; ``new_topics`` are changelogs that this rebalance created.
    ``replicas`` has the rack of each replica, None for one without a rack. ``end_offsets`` are
    those of the changelogs and ``committed`` the group's offsets in sources from which stores are
    restored; None if Kafka could not be asked. ``release`` is the leader's.
    """

    name: str | None
    assignor: str
    configs: Configs
    now_ms: int
    leader: ProcessId
    subtopologies: Mapping[int, TopicsInfo]
    partitions: Mapping[str, int]
    new_topics: frozenset[str]
    replicas: Mapping[TopicPartition, Sequence[str | None]]
    end_offsets: Mapping[TopicPartition, int] | None
    committed: Mapping[TopicPartition, int] | None
    members: tuple[MemberSubscription, ...]
    release: Release = NEWEST


_LONG, _LONG_SIGN = 1 << 64, 1 << 63


@dataclass(slots=True)
class ClientMetadata:
    """A process: its consumers in the order of their member ids, and their combined subscriptions.

    ``owner`` has the consumer that owned each source partition, and ``reported`` the tasks of which
    each consumer reported an offset sum. ``end_point`` and ``tags`` are those of the consumer that
    the leader met first; ``racks`` are those of all consumers, in the order in which it met them.
    Source: StreamsPartitionAssignor.ClientMetadata.
    """

    process: ProcessId
    end_point: tuple[str, int] | None
    tags: Mapping[str, str]
    consumers: list[str] = field(default_factory=list)
    racks: list[str | None] = field(default_factory=list)
    owner: dict[TopicPartition, str] = field(default_factory=dict)
    offset_sums: dict[TaskId, int] = field(default_factory=dict)
    reported: dict[str, Sequence[TaskId]] = field(default_factory=dict)
    _previous: tuple[object, tuple[frozenset[TaskId], frozenset[TaskId]]] | None = None

    @property
    def capacity(self) -> int:
        """The number of stream threads, each of which has one consumer."""
        return len(self.consumers)

    @property
    def rack(self) -> str | None:
        """The rack, if all consumers name the same one."""
        return self.racks[0] if len(set(self.racks)) == 1 else None

    def previous_tasks(
        self, readers: Mapping[TopicPartition, TaskId]
    ) -> tuple[frozenset[TaskId], frozenset[TaskId]]:
        """Return the tasks that the client ran, and the others of which it has state.

        It ran the tasks that read the partitions that it owned (``readers``), and those that it
        reports as running. Reported tasks that the topology no longer has are included. Raises
        ScenarioError ``bad_field`` where Kafka fails: no task reads any partition that it owned.
        Source: ClientState.initializePrevTasks.
        """
        if self._previous is not None and self._previous[0] is readers:
            return self._previous[1]
        active = {readers[partition] for partition in self.owner if partition in readers}
        if self.owner and not active:
            raise ScenarioError(
                "bad_field", f"members: no task reads what those of process {self.process} own"
            )
        running = {task for task, sum_ in self.offset_sums.items() if sum_ == LATEST_OFFSET}
        had = frozenset(active | running), frozenset(self.offset_sums.keys() - active - running)
        self._previous = readers, had
        return had

    def lags(self, end_offset_sums: Mapping[TaskId, int]) -> dict[TaskId, int]:
        """Return the client's lag of every stateful task, in offsets.

        A task of which it has no state is included.

        Source: ClientState.computeTaskLags.
        """
        lags = dict(end_offset_sums)  # a task that isn't reported has to be restored completely
        for task, offset_sum in self.offset_sums.items():
            if task in lags:
                lags[task] = _as_long(task_lag(offset_sum, lags[task]))
        return lags


def clients_of(members: Sequence[MemberSubscription]) -> dict[ProcessId, ClientMetadata]:
    """Group members by process, in the order in which the leader meets their processes.

    The leader iterates over its members in the order of a HashMap. Where consumers of a process
    contradict each other, the last one counts for owned partitions and offset sums, and the first
    one for the end point and tags. Source: StreamsPartitionAssignor.assign, its step zero.
    """
    by_id = {member.member_id: member for member in members}
    clients: dict[ProcessId, ClientMetadata] = {}
    for member_id in in_hash_map_order(by_id):
        member = by_id[member_id]
        client = clients.get(member.process)
        if client is None:
            client = ClientMetadata(member.process, member.end_point, member.tags)
            clients[member.process] = client
        client.consumers.append(member_id)
        client.racks.append(member.rack)
        client.owner.update(dict.fromkeys(member.owned, member_id))
        client.offset_sums.update(member.offset_sums)
        client.reported[member_id] = tuple(member.offset_sums)
    for client in clients.values():
        client.consumers.sort(key=utf16)
    return clients


def _as_long(number: int) -> int:
    """Wrap a number around as Java's long does."""
    return (number + _LONG_SIGN) % _LONG - _LONG_SIGN
