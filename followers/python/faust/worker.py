"""A Faust worker as its follower sees it: its topology, its tables' positions, its user data.

Faust's own user data follows that of the follower. Readers of Kafka Streams' user data stop at the
end of the follower's part, like Kafka Streams, and need not know of Faust.
"""

from __future__ import annotations

import logging
import struct
import zlib
from collections.abc import Collection, Mapping
from typing import Any

from faust.assignor.client_assignment import ClientMetadata
from faust.types import AppT

from caughtup.followers.python.topology import Resume, TopicGroup, Topology
from caughtup.models.errors import DecodeError
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import TopicsInfo
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, group_partitions


class CountedTopology(Topology):
    """Topics and tables with the same number of partitions form one subtopology.

    Faust does not show which agent changes which table. With this grouping, partition p of a table
    is on the member that reads partition p of all topics that may change it. The number of
    partitions is the subtopology's number: 6_0 is partition 0 of all topics with six. So all
    members use the same names for tasks, before they know each other's topics.
    """

    def __init__(self) -> None:
        """Make an empty topology; ``keep`` sets the tables, ``count`` the topics."""
        self.topics: tuple[str, ...] = ()
        #: All changelog topics. The list object stays the same.
        self.changelogs: list[str] = []  # type: ignore[assignment]
        self._tables: dict[str, str] = {}
        self._everywhere: frozenset[str] = frozenset()
        self._counts: dict[str, int] = {}

    def keep(self, tables: Mapping[str, str], everywhere: Collection[str]) -> None:
        """Set the tables, by changelog topic, and the changelogs of global tables (``everywhere``).

        Global tables are on every member, and belong to no task.
        """
        self._tables = dict(sorted(tables.items()))
        self.changelogs[:] = self._tables
        self._everywhere = frozenset(everywhere)

    def count(self, counts: Mapping[str, int]) -> None:
        """Set the topics' numbers of partitions; topics without partitions are left out."""
        self._counts = {
            topic: count
            for topic, count in sorted(counts.items())
            if count and topic not in self._everywhere
        }
        self.topics = tuple(self._counts)

    def tasks(self, counts: Mapping[str, int], known: Collection[str]) -> TaskPartitions:
        """Return the tasks whose topics are all ``known``, with their changelog topics."""
        there = {topic: count for topic, count in counts.items() if topic in known}
        subtopologies = {}
        for number in sorted(set(there.values()) - {0}):
            group = self._group(number, there)
            changelogs = tuple(group.tables.values())
            subtopologies[number] = TopicsInfo(sources=group.topics, changelogs=changelogs)
        return group_partitions(subtopologies, there)

    def stateful(self, task: TaskId) -> bool:
        """Return whether a task keeps tables."""
        return bool(self.tables_of(task))

    def tables_of(self, task: TaskId) -> Mapping[str, TopicPartition]:
        """Return the changelog partition of each of a task's tables, by the table's name."""
        tables = self._group(task.subtopology, self._counts).tables
        return {name: TopicPartition(topic, task.partition) for name, topic in tables.items()}

    def task_reading(self, source: TopicPartition) -> TaskId | None:
        """Return the task that reads a source partition; None if there is none."""
        count = self._counts.get(source.topic)
        return None if count is None else TaskId(count, source.partition)

    def task_restored_from(self, changelog: TopicPartition) -> TaskId | None:
        """Return the task that a changelog partition restores; None if there is none."""
        return self.task_reading(changelog) if changelog.topic in self._tables else None

    def _group(self, number: int, counts: Mapping[str, int]) -> TopicGroup:
        """Return the topics and tables with this number of partitions.

        If tables have no topic with that number, their changelogs count as source topics.
        """
        topics = [topic for topic, count in sorted(counts.items()) if count == number]
        tables = {self._tables[topic]: topic for topic in topics if topic in self._tables}
        sources = tuple(topic for topic in topics if topic not in self._tables)
        return TopicGroup(sources or tuple(tables.values()), tables)


class FaustCopies:
    """A read-only view of a worker's tables, which Faust restores by itself.

    Faust restores in the application's thread, and this is called in the consumer's. So collections
    that change there are copied before they are iterated.
    """

    def __init__(self, app: AppT, topology: Topology) -> None:
        """Make the view of the tables of ``app``."""
        self._app = app
        self._topology = topology
        self._active: frozenset[TopicPartition] = frozenset()
        self._recovered: frozenset[TopicPartition] = frozenset()
        app.on_rebalance_complete.connect(self._complete)

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the next offset to restore of each copy; source: faust.tables.recovery.Recovery.

        Faust has the offset of the last record read, None or -1 for none. It writes records to a
        table in batches, and all of them before a partition is handed over.
        """
        recovery = self._recovery
        positions: dict[TopicPartition, int] = {}
        for partitions, offsets in (
            (recovery.standby_tps, recovery.standby_offsets),
            (recovery.active_tps, recovery.active_offsets),
        ):
            last = offsets.copy()
            for one in partitions.copy():
                offset = last.get(one)
                positions[TopicPartition(*one)] = 0 if offset is None else offset + 1
        return positions

    def restored(self, task: TaskId) -> bool:
        """Return whether a task has been restored since it became active here."""
        return self._recovered.issuperset(self._topology.tables_of(task).values())

    def assigned(
        self, active: frozenset[TaskId], standby: frozenset[TaskId], resume: Resume
    ) -> None:
        """Apply an assignment; Faust's recovery starts and resumes by itself."""
        self._active = frozenset(
            one for task in active for one in self._topology.tables_of(task).values()
        )
        self._recovered &= self._active

    async def _complete(self, *given: object, **more: object) -> None:
        """Handle Faust's signal that all actives are restored, perhaps of an earlier rebalance."""
        restored = {TopicPartition(*one) for one in self._recovery.active_tps.copy()}
        self._recovered = self._active & restored

    @property
    def _recovery(self) -> Any:
        tables: Any = self._app.tables
        return tables.recovery


log = logging.getLogger("caughtup.followers")

_TAIL = struct.Struct(">I5s")  # the number of bytes before it, and a mark
_FAUST = b"faust"


def join_user_data(followers: bytes, fausts: bytes) -> bytes:
    """Encode user data: a follower's, followed by Faust's, compressed."""
    packed = zlib.compress(fausts)
    return b"".join((followers, packed, _TAIL.pack(len(packed), _FAUST)))


def split_user_data(data: bytes | None) -> tuple[bytes, bytes]:
    """Split user data into a follower's and Faust's.

    Raises DecodeError: ``not_faust`` for user data without Faust's, ``truncated`` or ``corrupt``
    for damaged ones.
    """
    whole = data or b""
    if not whole.endswith(_FAUST) or len(whole) < _TAIL.size:
        raise DecodeError("not_faust", "the user data weren't written by a Faust worker")
    length, _ = _TAIL.unpack(whole[-_TAIL.size :])
    followers_end = len(whole) - _TAIL.size - length
    if followers_end < 0:
        raise DecodeError(
            "truncated", f"Faust's user data names a length of {length} bytes and is shorter"
        )
    try:
        fausts = zlib.decompress(whole[followers_end : -_TAIL.size])
    except zlib.error as error:
        raise DecodeError("corrupt", f"Faust's user data: {error}") from None
    return whole[:followers_end], fausts


def read_worker(user_data: bytes | None) -> tuple[bytes, str]:
    """Return a member's user data as a follower, and its web address.

    The address is empty for a member that is not a Faust worker.
    """
    try:
        followers, fausts = split_user_data(user_data)
        return followers, str(ClientMetadata.loads(fausts).url)
    except Exception:
        log.warning("a member isn't known to be a Faust worker", exc_info=True)
        return user_data or b"", ""
