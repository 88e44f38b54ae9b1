"""A simulated application: topology, states, and the rates of writing and restoring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from caughtup.models.assignment.configs import Configs
from caughtup.models.assignors.following.follower import Patience
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import TopicsInfo
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, group_partitions
from caughtup.models.simulation.membership import Timings


class AssignmentProtocol(StrEnum):
    """Who assigns: a leader, or the coordinator of a streams or consumer group.

    Streams groups are KIP-1071, consumer groups on the new protocol KIP-848.
    """

    CLASSIC = "classic"
    STREAMS = "streams"
    CONSUMER = "consumer"


#: The defaults of brokers for members of streams groups and of consumer groups.
STREAMS_TIMINGS = Timings(heartbeat_interval_ms=5_000)
CONSUMER_TIMINGS = Timings(heartbeat_interval_ms=5_000, initial_rebalance_delay_ms=0)


@dataclass(frozen=True, slots=True)
class Changelog:
    """All changelogs of a task: the sum of their end offsets, and its growth.

    ``end``: offsets at the start. ``per_second``: offsets a second that the task writes while it is
    processed.
    """

    end: int
    per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedApplication:
    """An application: topology, configs, and how fast its threads restore.

    ``changelogs`` has each stateful task. ``restore_per_second`` is what one stream thread
    restores, in offsets a second, of all its tasks together; ``restore_start_ms`` is the time until
    a state begins to be restored or followed, and ``task_start_ms`` the time until a task that need
    not restore runs. ``waits_for_thread``: no task of a thread runs while one of its actives
    restores, as until Kafka 3.7. ``eager``: members give up all partitions before they join again,
    as before Kafka 2.4. ``cleanup_delay_ms`` is ``state.cleanup.delay.ms``. ``static_members``:
    each thread has a ``group.instance.id``. ``replicas`` has the racks of each partition's
    replicas, for assignments by rack; clients' racks are their instances'. ``protocol``: if the
    coordinator assigns, ``assignor`` is ``uniform`` or ``range`` for a consumer group, whose
    partitions are tasks here, and has no meaning for a streams group. ``task_names`` are the tasks'
    names in time lines, if they aren't their ids. ``flush_offsets``: the most offsets of a state
    that are only in memory, and lost when the instance is killed. Until Kafka 4.2 a checkpoint was
    written each 10,000 offsets; since 4.3 RocksDB keeps the offsets itself, and flushes each 16 MB
    of a store. ``follower``: the leader follows what ``assignor`` recommends, with this patience.
    """

    subtopologies: Mapping[int, TopicsInfo]
    partitions: Mapping[str, int]
    changelogs: Mapping[TaskId, Changelog]
    restore_per_second: float
    assignor: str = "high_availability"
    configs: Configs = field(default_factory=Configs)
    timings: Timings = field(default_factory=Timings)
    restore_start_ms: int = 0
    task_start_ms: int = 0
    waits_for_thread: bool = False
    eager: bool = False
    cleanup_delay_ms: int = 600_000
    static_members: bool = False
    protocol: AssignmentProtocol = AssignmentProtocol.CLASSIC
    task_names: Mapping[TaskId, str] = field(default_factory=dict)
    replicas: Mapping[TopicPartition, Sequence[str | None]] = field(default_factory=dict)
    flush_offsets: int = 10_000
    follower: Patience | None = None

    def tasks(self) -> TaskPartitions:
        """Return the tasks and their partitions."""
        return group_partitions(self.subtopologies, self.partitions)


def uniform(
    stateful: int, stateless: int, changelog: Changelog
) -> tuple[Mapping[int, TopicsInfo], Mapping[str, int], Mapping[TaskId, Changelog]]:
    """Return a topology of one stateful and one stateless subtopology with these numbers of tasks.

    Returns subtopologies, partitions of topics and changelogs, as a SimulatedApplication takes
    them.
    """
    subtopologies: dict[int, TopicsInfo] = {}
    partitions: dict[str, int] = {}
    changelogs: dict[TaskId, Changelog] = {}
    if stateful:
        subtopologies[0] = TopicsInfo(("counted",), ("counts-changelog",))
        partitions["counted"] = stateful
        changelogs = {TaskId(0, number): changelog for number in range(stateful)}
    if stateless:
        number = len(subtopologies)
        subtopologies[number] = TopicsInfo(("mapped",))
        partitions["mapped"] = stateless
    return subtopologies, partitions, changelogs


def changelog_ends(
    tasks: TaskPartitions, sums: Mapping[TaskId, int]
) -> Mapping[TopicPartition, int]:
    """Return end offsets whose sums are the tasks': the whole sum in each first changelog."""
    return {
        partition: sums[task] if number == 0 else 0
        for task, partitions in tasks.changelogs.items()
        for number, partition in enumerate(partitions)
    }
