"""The offset commits of a poll as columns, without a Python object for each.

The same records are accepted and refused, with the same errors, as by ``decode_key`` and
``decode_offset_commit``: columns are read only in the forms that brokers write, and all other
records are decoded one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.models.ids import NUMBER_MAX
from caughtup.models.polls.column_reader import ColumnReader, Ints, Rows
from caughtup.models.polls.records import ListedRecords, Records
from caughtup.models.wire.bounds import LATEST_MS
from caughtup.models.wire.consumer_offsets import (
    OFFSET_COMMIT_TYPES,
    OffsetCommit,
    OffsetKey,
    decode_key,
    decode_offset_commit,
    head_names,
)

#: Columns by name, each with its own type.
Columns = dict[str, NDArray[Any]]

TOPIC_ID_BYTES = 16
_VERSIONS = range(5)
# The topic id's tag (0) and its length, one byte each, as one number.
_TOPIC_ID_HEAD = TOPIC_ID_BYTES

#: The offset of a tombstone.
NO_OFFSET = -1
#: The topic id of a commit without one.
NO_TOPIC_ID = -1
#: The last bytes of a key, which are the partition; before are its type, the group and the topic.
PARTITION_BYTES = 4
#: The shortest key: its type, the lengths of an empty group and topic, and the partition.
_LEAST_KEY_BYTES = 6 + PARTITION_BYTES
_LEGACY, CURRENT_TYPE = (kind.to_bytes(2) for kind in OFFSET_COMMIT_TYPES)
_TYPE_BYTES = len(CURRENT_TYPE)
_NO_ID = bytes(TOPIC_ID_BYTES)
_NO_ROW = -1


class CommitColumns(NamedTuple):
    """Commits in the order of their log, one row each; a key may occur more than once.

    ``heads`` are the distinct starts of keys, up to the partition, with the current key type: a
    group and a topic. ``head`` is a row's index in them. ``offset`` is NO_OFFSET for a tombstone;
    ``time_ms`` the time of the commit (ms since the epoch; 0 for a tombstone); ``topic_id`` the
    index in ``topic_ids`` (16 bytes each), or NO_TOPIC_ID. All arrays are int64. ``records`` are
    the records themselves.
    """

    heads: list[bytes]
    head: Ints
    partition: Ints
    offset: Ints
    time_ms: Ints
    topic_id: Ints
    topic_ids: list[bytes]
    records: Records

    def by_key(self) -> dict[OffsetKey, OffsetCommit | None]:
        """Return the last commit of each key as an object; None for a tombstone."""
        keys: Sequence[bytes] = self.records.keys()  # type: ignore[assignment]  # none is null
        last = dict(zip(map(decode_key, keys), self.records.values(), strict=True))
        return {
            key: None if value is None else decode_offset_commit(value)
            for key, value in last.items()
            if isinstance(key, OffsetKey)
        }

    def committed_heads(self) -> set[int]:
        """Return the indices of the heads that have a commit that is no tombstone."""
        found: list[int] = np.unique(self.head[self.offset != NO_OFFSET]).tolist()
        return set(found)

    def without(self, heads: Iterable[int]) -> CommitColumns:
        """Return the commits without those of some heads, given by their indices."""
        wanted = np.ones(len(self.heads), np.bool_)
        wanted[list(heads)] = False
        rows = wanted[self.head]
        return self._replace(
            head=self.head[rows],
            partition=self.partition[rows],
            offset=self.offset[rows],
            time_ms=self.time_ms[rows],
            topic_id=self.topic_id[rows],
            records=self.records.select(rows),
        )

    def heads_by_topic_id(self) -> list[tuple[bytes, bytes]]:
        """Return each topic id with the head of its last commit, the newest last."""
        last = np.full(len(self.topic_ids) + 1, _NO_ROW, np.int64)
        last[self.topic_id] = np.arange(len(self.topic_id))
        last[NO_TOPIC_ID] = _NO_ROW
        rows = np.sort(last[last != _NO_ROW])
        heads, ids = self.head[rows].tolist(), self.topic_id[rows].tolist()
        return [
            (self.topic_ids[one], self.heads[head]) for one, head in zip(ids, heads, strict=True)
        ]


class CommitsAndErrors(NamedTuple):
    """Commits; and for each unreadable one its key (decoded, or its bytes) and the error."""

    commits: CommitColumns
    unreadable: list[tuple[object, Exception]]


class _Numbers(dict[bytes, int]):
    """Numbers distinct bytes in the order of their first use."""

    def __missing__(self, key: bytes) -> int:
        number = self[key] = len(self)
        return number


def no_commits() -> CommitColumns:
    """Return columns without a row."""
    none = np.empty(0, np.int64)
    return CommitColumns([], none, none, none, none, none, [], ListedRecords((), ()))


def decode_commits(records: Records, keys: ColumnReader | None = None) -> CommitsAndErrors:
    """Decode records all of whose keys have a type of offset commits.

    ``keys`` is a reader of their keys, if there is one already.
    """
    columns, good = _read_values(records.value_reader())
    numbers = _Numbers()
    heads, run = records.heads(PARTITION_BYTES)
    numbered = map(numbers.__getitem__, heads)
    columns["head"] = np.fromiter(numbered, np.int64, len(heads))[run]
    columns["partition"], in_range = _partitions(keys or records.key_reader())
    good &= in_range
    well_formed = _well_formed(numbers)
    if not well_formed.all():
        good &= well_formed[columns["head"]]
    topic_ids = _number_topic_ids(columns)
    unreadable: list[tuple[object, Exception]] = []
    if not good.all():
        unreadable = _decode_rows(records, good, columns, topic_ids)
    if unreadable:
        records = records.select(good)
        columns = {name: column[good] for name, column in columns.items()}
    commits = CommitColumns(
        *_current_heads(numbers, columns["head"]),
        columns["partition"],
        columns["committed"],
        columns["time"],
        columns["topic_id"] - 1,
        list(topic_ids)[1:],
        records,
    )
    return CommitsAndErrors(commits, unreadable)


def _read_values(reader: ColumnReader) -> tuple[Columns, Rows]:
    """Return the committed offsets, times and topic ids, and which rows were read."""
    present = reader.good.copy()
    fields = read_commit_values(reader)
    reader.require_ascii(fields["metadata_start"], fields["metadata_end"])
    good = reader.good
    if not present.all():
        fields["committed"][~present], fields["time"][~present] = NO_OFFSET, 0
        good = good | ~present
    return {name: fields[name] for name in ("committed", "time", "topic_id")}, good


def _partitions(reader: ColumnReader) -> tuple[Ints, Rows]:
    """Return the last four bytes of each key, and which of them are valid partitions."""
    reader.require(reader.end - reader.begin >= _LEAST_KEY_BYTES)
    reader.position = reader.end - PARTITION_BYTES
    found = reader.int32().astype(np.int64)
    return found, reader.good & (found >= 0) & (found <= NUMBER_MAX)


def _well_formed(heads: Iterable[bytes]) -> Rows:
    """Return which heads consist of a group and a topic, and nothing else."""
    all_heads = list(heads)
    reader = ColumnReader.of(all_heads)
    reader.int16()
    spans = [*reader.span(reader.int16()), *reader.span(reader.int16())]
    reader.require(reader.position == reader.end)
    exact = reader.good.copy()
    reader.require_ascii(spans[0], spans[3])
    for row in np.flatnonzero(exact & ~reader.good).tolist():
        exact[row] = head_names(all_heads[row]) is not None
    return exact


def _number_topic_ids(columns: Columns) -> _Numbers:
    """Replace topic ids by numbers, and return these; 0 stands for no id."""
    numbers = _Numbers({_NO_ID: 0})
    raw = columns["topic_id"]
    halves = raw.view(np.int64).reshape(-1, 2)
    found = columns["topic_id"] = np.zeros(len(raw), np.int64)
    rows = np.flatnonzero(halves[:, 0] | halves[:, 1])
    if not rows.size:
        return numbers
    # Nearly always a topic has one id: only one row of each head is looked up, and those with others.
    head = columns["head"][rows]
    example = np.zeros(int(head.max()) + 1, np.int64)
    example[head] = rows
    chosen = np.zeros(len(raw), np.bool_)
    chosen[example[head]] = True
    of_head = np.flatnonzero(chosen)
    found[of_head] = [numbers[topic_id] for topic_id in raw[of_head].tolist()]
    found[rows] = found[example[head]]
    others = rows[(halves[rows] != halves[example[head]]).any(axis=1)]
    found[others] = [numbers[topic_id] for topic_id in raw[others].tolist()]
    return numbers


def _decode_rows(
    records: Records, good: Rows, columns: Columns, ids: _Numbers
) -> list[tuple[object, Exception]]:
    """Decode rows that aren't good one by one.

    Return the keys and errors of the unreadable ones.
    """
    unreadable: list[tuple[object, Exception]] = []
    bad = records.select(~good)
    for row, key, value in zip(np.flatnonzero(~good), bad.keys(), bad.values(), strict=True):
        subject: object = key
        try:
            subject = decode_key(key or b"")
            if value is not None:
                commit = decode_offset_commit(value)
                columns["committed"][row] = commit.offset
                columns["time"][row] = commit.commit_timestamp_ms
                columns["topic_id"][row] = ids[commit.topic_id or _NO_ID]
            good[row] = True
        except Exception as error:  # noqa: BLE001 - a bug must affect this record only
            unreadable.append((subject, error))
    return unreadable


def _current_heads(numbers: _Numbers, head: Ints) -> tuple[list[bytes], Ints]:
    """Return the heads, legacy ones with the current key type, and each row's index."""
    heads = list(numbers)
    if not any(map(_is_legacy, heads)):
        return heads, head
    current = _Numbers()
    numbered = [current[CURRENT_TYPE + one[_TYPE_BYTES:]] for one in heads]
    return list(current), np.array(numbered, np.int64)[head]


def _is_legacy(head: bytes) -> bool:
    return head.startswith(_LEGACY)


def read_commit_values(values: ColumnReader) -> Columns:
    """Read every version's fields into one array each, -1 or zeroes for a field that a row lacks.

    ``committed`` (int64), ``epoch`` (int32), ``metadata_start`` and ``metadata_end`` (byte
    positions), ``time`` and ``expire`` (ms), ``topic_id`` (16 bytes). The same values are accepted
    as by ``decode_offset_commit``, except for unusual forms; rows of these, and rows that are
    unreadable or out of range, are not good afterwards.
    """
    count = len(values.good)
    nowhere = values.position
    version = values.int16()
    values.require((version >= _VERSIONS.start) & (version < _VERSIONS.stop))
    columns: Columns = {
        "committed": np.zeros(count, np.int64),
        "epoch": np.full(count, -1, np.int32),
        "metadata_start": nowhere.copy(),
        "metadata_end": nowhere.copy(),
        "time": np.zeros(count, np.int64),
        "expire": np.full(count, -1, np.int64),
        "topic_id": np.zeros(count, np.dtype((np.void, TOPIC_ID_BYTES))),
    }
    for one in _VERSIONS:
        rows = np.flatnonzero(values.good & (version == one))
        if not rows.size:
            continue
        if rows.size == count:
            return columns | _read_version(values, one)
        selected = values.select(rows)
        for name, read in _read_version(selected, one).items():
            columns[name][rows] = read
        values.put_back(rows, selected)
    return columns


def _read_version(values: ColumnReader, version: int) -> Columns:
    """Read the fields after the version. Source: Kafka's ``OffsetCommitValue``."""
    flexible = version >= 4
    fields: Columns = {"committed": values.int64()}
    values.require(fields["committed"] >= 0)
    if version >= 3:
        fields["epoch"] = values.int32()
        values.require(fields["epoch"] >= -1)
    length = values.uvarint(2) - 1 if flexible else values.int16()
    fields["metadata_start"], fields["metadata_end"] = values.span(length)
    fields["time"] = values.int64()
    values.require((fields["time"] >= 0) & (fields["time"] <= LATEST_MS))
    if version == 1:
        fields["expire"] = np.maximum(values.int64(), -1)
    if flexible:
        fields["topic_id"] = _read_topic_id(values)
    return fields


def _read_topic_id(values: ColumnReader) -> NDArray[np.void]:
    """Read tagged fields: none, or only the topic id."""
    tags = values.uint8()
    values.require(tags <= 1)
    rows = np.flatnonzero(tags == 1)
    if rows.size == len(tags):
        values.require(values.int16() == _TOPIC_ID_HEAD)
        return values.raw(TOPIC_ID_BYTES)
    topic_id = np.zeros(len(tags), np.dtype((np.void, TOPIC_ID_BYTES)))
    tagged = values.select(rows)
    tagged.require(tagged.int16() == _TOPIC_ID_HEAD)
    topic_id[rows] = tagged.raw(TOPIC_ID_BYTES)
    values.put_back(rows, tagged)
    return topic_id
