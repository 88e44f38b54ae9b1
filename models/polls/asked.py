"""The changes between two answers about a group, as records that its coordinator would have written.

Where ``__consumer_offsets`` may not be read, coordinators are asked, again and again. What differs
from their last answers becomes a ``Batch``, which is applied like one from the log. What no answer
has is made up in one way each:

- the time of a commit, and of a classic group's generation, is that of the answer that first had
  it: at most one interval late;
- a commit that repeats its offset is not seen;
- the generation of a classic group is one more than the newest that a member says it was in, or else
  than the last one here;
- changes that were undone between two answers are not seen.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from caughtup.models.errors import DecodeError
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.batch import Batch
from caughtup.models.polls.column_reader import Ints
from caughtup.models.polls.commit_columns import decode_commits
from caughtup.models.polls.records import ListedRecords
from caughtup.models.wire.consumer_group_records import ConsumerGroupRecord
from caughtup.models.wire.consumer_offsets import GroupKey
from caughtup.models.wire.group_metadata import GroupMetadata, decode_subscription
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    RecordType,
    ShareGroupKey,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.models.wire.share_groups import SHARE, ShareGroup
from caughtup.models.wire.streams_group_records import StreamsGroupRecord

#: The keys and the records that an answer about one group is decoded to.
AskedKey = (
    GroupKey
    | ConsumerGroupKey
    | ConsumerGroupMemberKey
    | ShareGroupKey
    | StreamsGroupKey
    | StreamsGroupMemberKey
)
AskedRecord = GroupMetadata | ConsumerGroupRecord | ShareGroup | StreamsGroupRecord

_HEAD = struct.Struct(">hh")
_LENGTH, _PARTITION = struct.Struct(">h"), struct.Struct(">i")
#: A commit's value of version 3 without metadata: version, offset, leader epoch, length, time (ms).
_VALUE = struct.Struct(">hqihq")
_VERSION, _NO_EPOCH = 3, -1
_CONSUMER = "consumer"
_NONE = np.empty(0, np.int64)


class TopicOffsets(NamedTuple):
    """A group's commits on a topic: arrays (int64) of the same length, partitions ascending."""

    topic: str
    partitions: Ints
    offsets: Ints


@dataclass(slots=True)
class _Group:
    """What was last answered about a group."""

    records: Mapping[AskedKey, AskedRecord] = field(default_factory=dict)
    committed: dict[str, tuple[Ints, Ints]] = field(default_factory=dict)


class AskedGroups:
    """What coordinators last answered about each group; ``take`` returns what has changed since."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._batch = Batch()
        self._keys: list[bytes] = []
        self._values: list[bytes | None] = []

    def names(self) -> set[str]:
        """Return the groups that were there by the last answers."""
        return set(self._groups)

    def __contains__(self, group: str) -> bool:
        """Return whether a group was there by the last answers."""
        return group in self._groups

    def group_type(self, group: str) -> str:
        """Return the type by which a group was last described: of commits alone, it is classic."""
        known = self._groups.get(group)
        for key in () if known is None else known.records:
            if isinstance(key, ConsumerGroupKey | ConsumerGroupMemberKey):
                return "consumer"
            if isinstance(key, StreamsGroupKey | StreamsGroupMemberKey):
                return "streams"
            if isinstance(key, ShareGroupKey):
                return SHARE
        return "classic"

    def described(self, group: str, records: Mapping[AskedKey, AskedRecord], at_ms: int) -> None:
        """Take in all records of a group, answered at a time (ms), by their keys.

        There are none if it has no members and no state.
        """
        known = self._groups.setdefault(group, _Group())
        key = GroupKey(group)
        if isinstance(found := records.get(key), GroupMetadata):
            before = known.records.get(key)
            before = before if isinstance(before, GroupMetadata) else None
            records = {key: _numbered(found, before, at_ms)}
        share_key = ShareGroupKey(RecordType.SHARE_GROUP_METADATA, group)
        if isinstance(share := records.get(share_key), ShareGroup):
            before = known.records.get(share_key)
            if isinstance(before, ShareGroup):  # an answer of another kind has its start offsets
                records = {share_key: replace(share, starts=before.starts)}
        for one, record in records.items():
            if known.records.get(one) != record:
                self._changed(one, record)
        for one in known.records.keys() - records.keys():
            self._changed(one, None)
        known.records = records

    def committed(
        self, group: str, topics: Iterable[TopicOffsets], at_ms: int, *, whole: bool = True
    ) -> None:
        """Take in the commits of a group, answered at a time (ms); those left out are deleted.

        Not ``whole``: some could not be answered about, so that none is deleted.
        """
        known = self._groups.setdefault(group, _Group())
        there = set[str]()
        for topic, partitions, offsets in topics:
            there.add(topic)
            before, offsets_before = known.committed.get(topic, (_NONE, _NONE))
            if not whole:
                partitions, offsets = _merged(before, offsets_before, partitions, offsets)
            known.committed[topic] = partitions, offsets
            if np.array_equal(before, partitions):
                moved = offsets != offsets_before
                self._commits(group, topic, partitions[moved], offsets[moved], at_ms)
                continue
            same = dict(zip(before.tolist(), offsets_before.tolist(), strict=True))
            at = [
                row
                for row, (number, offset) in enumerate(
                    zip(partitions.tolist(), offsets.tolist(), strict=True)
                )
                if same.get(number) != offset
            ]
            self._commits(group, topic, partitions[at], offsets[at], at_ms)
            self._deleted(group, topic, np.setdiff1d(before, partitions))
        for topic in sorted(known.committed.keys() - there if whole else ()):
            self._deleted(group, topic, known.committed.pop(topic)[0])

    def share_starts(self, group: str, starts: Mapping[TopicPartition, int]) -> None:
        """Take in the share-partition start offsets of a group that was described before."""
        key = ShareGroupKey(RecordType.SHARE_GROUP_METADATA, group)
        known = self._groups.get(group)
        record = None if known is None else known.records.get(key)
        if known is not None and isinstance(record, ShareGroup) and record.starts != starts:
            found = replace(record, starts=starts)
            known.records = {**known.records, key: found}
            self._changed(key, found)

    def gone(self, group: str) -> None:
        """Remove a group that is there no more."""
        known = self._groups.pop(group, None)
        if known is None:
            return
        for key in known.records:
            self._changed(key, None)
        for topic, (partitions, _) in sorted(known.committed.items()):
            self._deleted(group, topic, partitions)

    def take(self) -> Batch:
        """Return the changes since the last call."""
        batch, self._batch = self._batch, Batch()
        if self._keys:
            batch.commits = decode_commits(ListedRecords(self._keys, self._values)).commits
            self._keys, self._values = [], []
        return batch

    def _changed(self, key: AskedKey, record: AskedRecord | None) -> None:
        # A key and its record are of the same protocol: both come from one answer.
        if isinstance(key, GroupKey):
            self._batch.groups[key.group] = record  # type: ignore[assignment]
        elif isinstance(key, ShareGroupKey):
            self._batch.share_groups[key.group] = record  # type: ignore[assignment]
        elif isinstance(key, StreamsGroupKey | StreamsGroupMemberKey):
            self._batch.streams_group_records[key] = record  # type: ignore[assignment]
        else:
            self._batch.consumer_group_records[key] = record  # type: ignore[assignment]

    def _commits(self, group: str, topic: str, partitions: Ints, offsets: Ints, at_ms: int) -> None:
        self._add_keys(group, topic, partitions)
        self._values += [
            _VALUE.pack(_VERSION, offset, _NO_EPOCH, 0, at_ms) for offset in offsets.tolist()
        ]

    def _deleted(self, group: str, topic: str, partitions: Ints) -> None:
        self._add_keys(group, topic, partitions)
        self._values += [None] * len(partitions)

    def _add_keys(self, group: str, topic: str, partitions: Ints) -> None:
        names = group.encode(), topic.encode()
        head = _HEAD.pack(RecordType.OFFSET_COMMIT, len(names[0])) + names[0]
        head += _LENGTH.pack(len(names[1])) + names[1]
        self._keys += [head + _PARTITION.pack(number) for number in partitions.tolist()]


def _merged(
    before: Ints, offsets_before: Ints, partitions: Ints, offsets: Ints
) -> tuple[Ints, Ints]:
    """Return commits with those before of other partitions, by partition."""
    kept = np.isin(before, partitions, invert=True)
    numbers = np.concatenate([before[kept], partitions])
    order = np.argsort(numbers, kind="stable")
    return numbers[order], np.concatenate([offsets_before[kept], offsets])[order]


def _numbered(found: GroupMetadata, before: GroupMetadata | None, at_ms: int) -> GroupMetadata:
    """Return the metadata with a generation and its time (ms): the last ones if nothing has changed."""
    if before is not None and before == replace(
        found, generation=before.generation, state_timestamp_ms=before.state_timestamp_ms
    ):
        return before
    least = 1 if before is None else before.generation + 1
    generation = max(least, 1 + _newest_told(found))
    return replace(found, generation=generation, state_timestamp_ms=at_ms)


def _newest_told(metadata: GroupMetadata) -> int:
    """Return the newest generation in which a consumer says that it was before, 0 if none does."""
    newest = 0
    if metadata.protocol_type == _CONSUMER:
        for member in metadata.members:
            try:
                newest = max(newest, decode_subscription(member.subscription).generation)
            except DecodeError:
                continue
    return newest
