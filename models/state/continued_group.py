"""The generations and epochs of one group, from its records in the order of their log: for the history.

The same models compare them as in the service. What the next batch of records needs is a value
(``GroupMemory``), so that the result doesn't depend on where batches are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from caughtup.models.commits.table import LastCommits
from caughtup.models.groups.membership import Member, Membership, read_classic_groups
from caughtup.models.groups.table import GroupTable
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.batch import Batch, Record, decode_batch, decode_records
from caughtup.models.polls.generations import split_generations
from caughtup.models.polls.records import ListedRecords
from caughtup.models.rebalances.rebalance import GroupRebalance
from caughtup.models.rebalances.table import Rebalances
from caughtup.models.state.rebalancing import COMPLETING, DECIDING, NEW_GROUP
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
)
from caughtup.models.wire.record_keys import RecordType
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
)

_NOTHING = LastCommits([], [], [])


class GroupRecord(NamedTuple):
    """A record of a group in ``__consumer_offsets``: its place in the log, its time (ms), key and value."""

    log_offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class ClusterNow:
    """What is known of topics: names by id, numbers of partitions, and those that are gone for certain."""

    names: Mapping[bytes, str] = field(default_factory=dict)
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()


class GroupGeneration(NamedTuple):
    """A generation or epoch of a group, and the rebalance that began it.

    ``as_of_ms``: when it was decided, or written where that isn't known. ``protocol`` is the
    ``group.protocol``: ``classic``, ``consumer`` or ``streams``; ``group_type`` as in Membership.
    ``rebalance`` has no causes if the generation before isn't known. Only ``error`` of a record that
    can't be read.
    """

    as_of_ms: int
    log_offset: int
    group_type: str | None = None
    protocol: str | None = None
    rebalance: GroupRebalance | None = None
    error: str | None = None


class KeptAssignment(NamedTuple):
    """A Membership without an object for each partition.

    ``held``: of each topic, the partitions of a member, given by its number in ``holders``.
    """

    group_type: str
    generation: int
    members: tuple[Member, ...]
    topics: frozenset[str]
    rebalance_timeout_ms: int | None
    assignor: str | None
    as_of_ms: int | None
    by_epochs: bool
    unnamed: bool
    holders: list[Member]
    held: list[tuple[int, str, list[int]]]


class GroupMemory(NamedTuple):
    """What the next records of a group are compared with; it has nothing but what can be encoded.

    ``records``: the last one of each key on the new protocols. ``decided`` and ``counts`` as in
    ``Rebalances.last``. ``is_whole``: whether a generation has been compared, or the group was seen from
    its first one: otherwise it isn't known what was before. ``is_lost``: nothing is known of the group
    until it is deleted, or classic. ``decided_by``: ``records`` as of ``decided``, if names of its topics
    weren't known then.
    """

    records: tuple[tuple[bytes, bytes], ...] = ()
    decided: KeptAssignment | None = None
    counts: dict[str, int] | None = None
    due_ms: int | None = None
    is_whole: bool = False
    is_lost: bool = False
    decided_by: tuple[tuple[bytes, bytes], ...] = ()


#: Of a group that was too large to be kept, or failed.
LOST = GroupMemory(is_lost=True)


class ContinuedGroup:
    """A group, continued from its memory: ``begin`` applies earlier records, ``read`` compares new ones."""

    def __init__(self, group: str, memory: GroupMemory | None, cluster: ClusterNow) -> None:
        """Continue with what ``memory`` returned, None for a group that was not seen before."""
        self.group = group
        self._cluster = cluster
        self._groups = GroupTable(cluster.names, lambda: cluster.partition_counts)
        self._rebalances = Rebalances()
        self._records: dict[bytes, bytes] = {}
        self._decided_by: dict[bytes, bytes] = {}
        self._due_ms: int | None = None
        self._is_whole = False
        self._is_lost = memory is not None and memory.is_lost
        if memory is None:
            return
        self._apply(decode_batch(list[Record](memory.records)))
        self._records = dict(memory.records)
        self._due_ms, self._is_whole = memory.due_ms, memory.is_whole
        if memory.decided is not None:
            self._rebalances.restore(group, _membership(memory.decided), memory.counts or {})
        if memory.decided_by:
            self._decided_by = dict(memory.decided_by)
            self._name(list(self._decided_by.items()))

    def _name(self, records: list[tuple[bytes, bytes]]) -> None:
        """Complete an assignment with names of topics that weren't known before."""
        groups = GroupTable(self._cluster.names, lambda: self._cluster.partition_counts)
        for key, record in decode_batch(list[Record](records)).consumer_group_records.items():
            groups.apply_consumer(key, record)
        self._rebalances.begin(self.group, groups.decided(self.group))

    def begin(self, records: Sequence[GroupRecord]) -> None:
        """Apply records from before the history: they make no generation, and show what was there."""
        pairs: list[Record] = [(one.key, one.value) for one in records]
        self._apply(decode_batch(pairs))
        self._keep(pairs)
        decided = self._groups.decided(self.group)
        if decided is not None:
            self._rebalances.begin(self.group, decided)
            self._is_whole = True

    def read(
        self, records: Sequence[GroupRecord], commits: Mapping[int, LastCommits]
    ) -> Iterator[GroupGeneration]:
        """Yield the generations that records begin, in the order of the log.

        ``commits``: the group's last commits before each record of ``deciding_offsets``.
        """
        keys, values = [one.key for one in records], [one.value for one in records]
        begin = 0
        for part in split_generations(ListedRecords(keys, values)):
            own = records[begin : begin + len(part)]
            begin += len(part)
            yield from self._part(own, decode_records(part), commits)

    def _part(
        self,
        records: Sequence[GroupRecord],
        batch: Batch,
        commits: Mapping[int, LastCommits],
    ) -> Iterator[GroupGeneration]:
        deciding = _deciding(records)
        at = deciding or records[-1]
        if self._is_lost:
            if not batch.groups:  # a classic group's record has all of the group
                self._is_lost = not _is_gone(batch)
                return
            self._is_lost = False
        had = self._groups.decided(self.group)
        self._is_whole |= _is_first(batch, 0 if had is None else len(had.members))
        due_ms = self._due_ms
        self._apply(batch)
        self._keep([(one.key, one.value) for one in records])
        for error in batch.samples[:1]:
            yield GroupGeneration(at.timestamp_ms, at.log_offset, error=error)
        if batch.samples and not (batch.groups or self._groups.decided(self.group)):
            return  # a classic group's record that can't be read changes nothing
        if self.group not in self._rebalances:
            self._rebalances.begin(self.group, NEW_GROUP)
        decided = self._groups.decided(self.group)
        # On the new protocols an epoch with members is decided when its target assignment is complete.
        if deciding is None or (
            _type(deciding.key) not in COMPLETING and decided is not None and decided.members
        ):
            return
        found = self._rebalances.compare(
            self.group,
            decided,
            at.timestamp_ms if decided is None else decided.as_of_ms or at.timestamp_ms,
            [commits.get(at.log_offset, _NOTHING)],
            due_ms,
            exists=lambda topic: topic not in self._cluster.gone,
        )
        if decided is None:
            self._is_whole = False
        elif found is not None:
            self._decided_by = dict(self._records) if decided.unnamed else {}
            yield self._generation(at, decided, found)

    def _generation(
        self, at: GroupRecord, decided: Membership, found: GroupRebalance
    ) -> GroupGeneration:
        if not self._is_whole:
            found = GroupRebalance(
                generation=found.generation,
                causes=[],
                members=found.members,
                partitions=found.partitions,
            )
        self._is_whole = True
        protocol = decided.group_type if decided.by_epochs else "classic"
        as_of_ms = decided.as_of_ms or at.timestamp_ms
        return GroupGeneration(as_of_ms, at.log_offset, decided.group_type, protocol, found)

    def _apply(self, batch: Batch) -> None:
        for group, read in read_classic_groups(batch.groups).items():
            if isinstance(read, Exception):
                raise read
            self._groups.apply_classic(group, read and read.membership)
            generation = read and read.generation
            self._due_ms = generation.due_ms() if generation else None
        for key, record in batch.consumer_group_records.items():
            self._groups.apply_consumer(key, record)
        for streams_key, streams_record in batch.streams_group_records.items():
            self._groups.apply_streams(streams_key, streams_record)

    def _keep(self, records: Sequence[Record]) -> None:
        """Keep the last record of each key; of a classic group its assignment is kept instead."""
        for key, value in records:
            assert key is not None
            self._records.pop(key, None)
            if value is not None and _type(key) is not RecordType.GROUP_METADATA:
                self._records[key] = value

    def memory(self) -> GroupMemory | None:
        """Return what the next records are compared with, None if nothing is left of the group."""
        if self._is_lost:
            return LOST
        known = self._rebalances.last(self.group)
        if known is None:
            return GroupMemory(tuple(sorted(self._records.items()))) if self._records else None
        return GroupMemory(
            tuple(sorted(self._records.items())),
            _assignment(known[0]),
            dict(known[1]),
            self._due_ms,
            self._is_whole,
            decided_by=tuple(sorted(self._decided_by.items())),
        )


def deciding_offsets(records: Sequence[GroupRecord]) -> list[int]:
    """Return the offsets of the records before which the last commits have to be known."""
    return [one.log_offset for one in records if _type(one.key) in DECIDING]


def _deciding(records: Sequence[GroupRecord]) -> GroupRecord | None:
    """Return the record of a part that begins a generation, if one does: a part has one such."""
    for types in (COMPLETING, DECIDING):
        found = [one for one in records if _type(one.key) in types]
        if found:
            return found[-1]
    return None


def _type(key: bytes) -> RecordType:
    return RecordType(int.from_bytes(key[:2], signed=True))


def _is_first(batch: Batch, members: int) -> bool:
    """Return whether a batch has a group's first generation or epoch.

    ``members``: how many it had before. Epoch 2 is the first one of a group with a single member, if
    the coordinator began with it; of several, one may have been there in epoch 1, which was compacted.
    """
    if any(one is not None and one.generation <= 1 for one in batch.groups.values()):
        return True
    new = (*batch.consumer_group_records.values(), *batch.streams_group_records.values())
    epochs = {
        one.epoch for one in new if isinstance(one, ConsumerGroupMetadata | StreamsGroupMetadata)
    }
    members += sum(
        isinstance(one, ConsumerGroupMemberMetadata | StreamsGroupMemberMetadata) for one in new
    )
    return min(epochs, default=3) <= (2 if members <= 1 else 1)


def _is_gone(batch: Batch) -> bool:
    """Return whether a batch deletes a group on a new protocol."""
    types = {RecordType.CONSUMER_GROUP_METADATA, RecordType.STREAMS_GROUP_METADATA}
    consumer, streams = batch.consumer_group_records, batch.streams_group_records
    return any(
        key.record_type in types and record is None
        for key, record in (*consumer.items(), *streams.items())
    )


def _assignment(decided: Membership) -> KeptAssignment:
    held: dict[tuple[str, str], list[int]] = {}
    holders: dict[str, Member] = {}
    for (topic, partition), member in sorted(decided.owners.items()):
        holders[member.member_id] = member
        held.setdefault((member.member_id, topic), []).append(partition)
    number = {name: place for place, name in enumerate(holders)}
    return KeptAssignment(
        decided.group_type,
        decided.generation,
        decided.members,
        decided.topics,
        decided.rebalance_timeout_ms,
        decided.assignor,
        decided.as_of_ms,
        decided.by_epochs,
        decided.unnamed,
        list(holders.values()),
        [(number[name], topic, numbers) for (name, topic), numbers in held.items()],
    )


def _membership(kept: KeptAssignment) -> Membership:
    return Membership(
        kept.group_type,
        kept.generation,
        kept.members,
        {
            TopicPartition(topic, partition): kept.holders[number]
            for number, topic, partitions in kept.held
            for partition in partitions
        },
        kept.topics,
        kept.rebalance_timeout_ms,
        kept.assignor,
        kept.as_of_ms,
        kept.by_epochs,
        kept.unnamed,
    )
