"""Decodes a whole batch of ``__consumer_offsets`` records at once, to what it changes.

The agents and the Spark jobs both read the topic with this, a poll or an Arrow batch at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from caughtup.models.errors import DecodeError, error_code
from caughtup.models.polls.column_reader import ColumnReader, Ints
from caughtup.models.polls.commit_columns import CommitColumns, decode_commits, no_commits
from caughtup.models.polls.records import ListedRecords, Records
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupRecord,
    decode_consumer_group_record,
)
from caughtup.models.wire.consumer_offsets import GroupKey, decode_key
from caughtup.models.wire.group_metadata import GroupMetadata, decode_group_metadata
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    RecordType,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.models.wire.share_groups import ShareGroup
from caughtup.models.wire.streams_group_records import (
    StreamsGroupRecord,
    decode_streams_group_record,
)

#: A record's key and value, as in the log.
Record = tuple[bytes | None, bytes | None]

_SAMPLES = 5
_KEY_TYPE_BYTES = 2
_OFFSET_COMMIT, _LEGACY_OFFSET_COMMIT = (
    int(kind).to_bytes(_KEY_TYPE_BYTES)
    for kind in (RecordType.OFFSET_COMMIT, RecordType.LEGACY_OFFSET_COMMIT)
)
_GROUP_METADATA = int(RecordType.GROUP_METADATA).to_bytes(_KEY_TYPE_BYTES)
#: The least possible type of a key, and a number above all possible types.
_LEAST_TYPE, _NO_TYPE = -1 << 15, 1 << 15
#: Keys are repetitive if less than this share of a sample of this size is distinct.
_SAMPLE = 4_000
_OFTEN = 0.7
# The records of share groups are only counted.
_TYPES_READ = frozenset(t for t in RecordType if not t.name.startswith("SHARE_GROUP"))
_PREFIXES_READ = frozenset(t.to_bytes(_KEY_TYPE_BYTES) for t in _TYPES_READ)
_CONSUMER_GROUP_KEYS = (ConsumerGroupKey, ConsumerGroupMemberKey, ConsumerGroupRegularExpressionKey)
_STREAMS_GROUP_KEYS = (StreamsGroupKey, StreamsGroupMemberKey)


@dataclass(slots=True)
class Batch:
    """The changes of a batch of records.

    ``commits`` has at least the last readable one of each key, in the order of the log. ``groups``
    (classic ones), ``consumer_group_records`` and ``streams_group_records`` have the last readable
    value of each key, None for a tombstone; ``group_offsets`` has the offset of each classic group's
    record, if it is known. ``share_groups`` are what coordinators answer, as their records are not
    decoded. ``records`` counts, by key type, every record with a
    readable key type; ``skipped`` those of types that aren't decoded here: share groups' and
    unknown ones. ``errors`` counts by key type (None if unreadable; 1 for 0, which means the same)
    and code; ``samples`` describes the first few. Of the values of a key only the last may be
    decoded, and earlier ones only while it is unreadable.
    """

    commits: CommitColumns = field(default_factory=no_commits)
    groups: dict[str, GroupMetadata | None] = field(default_factory=dict)
    group_offsets: dict[str, int] = field(default_factory=dict)
    consumer_group_records: dict[
        ConsumerGroupKey | ConsumerGroupMemberKey | ConsumerGroupRegularExpressionKey,
        ConsumerGroupRecord | None,
    ] = field(default_factory=dict)
    streams_group_records: dict[
        StreamsGroupKey | StreamsGroupMemberKey, StreamsGroupRecord | None
    ] = field(default_factory=dict)
    share_groups: dict[str, ShareGroup | None] = field(default_factory=dict)
    records: dict[int, int] = field(default_factory=dict)
    skipped: dict[int, int] = field(default_factory=dict)
    errors: dict[tuple[int | None, str], int] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)


def decode_batch(records: Iterable[Record]) -> Batch:
    """Decode records in the order of their partition; a broken one is counted and skipped.

    The result doesn't depend on where batches are cut: a key with an unreadable value keeps its
    last readable one. Never raises because of the bytes.
    """
    records = list(records)
    return decode_columns([key for key, _ in records], [value for _, value in records])


def decode_columns(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> Batch:
    """Decode as ``decode_batch`` does, faster, from two lists of keys and values."""
    if _are_repetitive(keys):
        batch = Batch()
        if _apply_last(batch, keys, values):
            return batch
    return decode_records(ListedRecords(keys, values))


def decode_records(records: Records) -> Batch:
    """Decode as ``decode_batch`` does, from any kind of Records."""
    batch = Batch()
    reader = records.key_reader()
    types = _types(reader)
    _count(batch, types)
    is_commit = (types == RecordType.OFFSET_COMMIT) | (types == RecordType.LEGACY_OFFSET_COMMIT)
    if not is_commit.all():
        others = records.select(~is_commit)
        _apply_others(batch, others.keys(), others.values())
        if others.offset is not None and batch.groups:
            _find_offsets(batch, others.keys(), others.offset)
        records, reader = records.select(is_commit), reader.select(np.flatnonzero(is_commit))
    if len(records):
        decoded = decode_commits(records, reader)
        batch.commits = decoded.commits
        for subject, error in decoded.unreadable:
            _count_error(batch, int(RecordType.OFFSET_COMMIT), error, 1, subject)
    return batch


def in_parts(records: Records, most: int) -> Iterator[Records]:
    """Yield records in parts of at most ``most``."""
    for first in range(0, len(records), most):
        yield records.select(slice(first, first + most))


def _are_repetitive(keys: Sequence[bytes | None]) -> bool:
    sample = keys[:_SAMPLE]
    return len(set(sample)) < _OFTEN * len(sample)


def _apply_last(batch: Batch, keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> bool:
    """Decode the last record of each key only, and return whether that suffices.

    If it doesn't, the batch is unchanged.
    """
    last = dict(zip(keys, values, strict=True))
    others = {key for key in last if not _is_commit(key)}
    if any(key and key.startswith(_LEGACY_OFFSET_COMMIT) for key in others):
        return False  # it may mean the same as another key
    commits = {key: value for key, value in last.items() if key not in others} if others else last
    found = decode_commits(ListedRecords(list(commits), list(commits.values())))
    if found.unreadable:
        return False  # an earlier value of the key has to be decoded
    batch.commits = found.commits
    of_others = 0
    if others:
        rows = [record for record in zip(keys, values, strict=True) if record[0] in others]
        other_keys, other_values = zip(*rows, strict=True)
        _count(batch, _types(ColumnReader.of(other_keys)))
        _apply_others(batch, other_keys, other_values)
        of_others = len(rows)
    if commits:
        batch.records[RecordType.OFFSET_COMMIT] = len(keys) - of_others
    return True


def types_of(records: Records) -> Ints:
    """Return the type of each record's key, and a number above all types for one without."""
    return _types(records.key_reader())


def _types(reader: ColumnReader) -> Ints:
    """Return each key's type, _NO_TYPE for a key that is too short."""
    types = reader.int16()
    types[~reader.good] = _NO_TYPE
    return types


def _is_commit(key: bytes | None) -> bool:
    return key is not None and key.startswith(_OFFSET_COMMIT)


def _apply_others(
    batch: Batch, keys: Sequence[bytes | None], values: Sequence[bytes | None]
) -> None:
    last = dict(zip(keys, values, strict=True))
    unread = {
        key
        for key, value in last.items()
        if key and key[:_KEY_TYPE_BYTES] in _PREFIXES_READ and not _apply(batch, key, value)
    }
    if unread:
        _fall_back(batch, list(zip(keys, values, strict=True)), unread)


def _find_offsets(batch: Batch, keys: Sequence[bytes | None], offsets: Ints) -> None:
    for key, offset in zip(keys, offsets.tolist(), strict=True):
        if key and key.startswith(_GROUP_METADATA):
            with suppress(DecodeError):  # it is already counted
                decoded = decode_key(key)
                if isinstance(decoded, GroupKey):
                    batch.group_offsets[decoded.group] = offset


def _count(batch: Batch, types: Ints) -> None:
    """Count records by their key's type; each key that is too short for a type is an error."""
    counts = np.bincount(types - _LEAST_TYPE)
    found = np.flatnonzero(counts)
    for key_type, count in zip((found + _LEAST_TYPE).tolist(), counts[found].tolist(), strict=True):
        if key_type == _NO_TYPE:
            error = DecodeError("truncated", f"{count} keys end before their type")
            _count_error(batch, None, error, count)
            continue
        batch.records[key_type] = count
        if key_type not in _TYPES_READ:
            batch.skipped[key_type] = count


def _apply(batch: Batch, key: bytes, value: bytes | None) -> bool:
    """Decode one record into the batch; return whether it was readable."""
    subject: object = key
    try:
        subject = decoded = decode_key(key)
        if isinstance(decoded, GroupKey):
            metadata = None if value is None else decode_group_metadata(value)
            batch.groups[decoded.group] = metadata
        elif isinstance(decoded, _CONSUMER_GROUP_KEYS):
            batch.consumer_group_records[decoded] = (
                None if value is None else decode_consumer_group_record(decoded.record_type, value)
            )
        elif isinstance(decoded, _STREAMS_GROUP_KEYS):
            batch.streams_group_records[decoded] = (
                None if value is None else decode_streams_group_record(decoded.record_type, value)
            )
    except Exception as error:  # noqa: BLE001 - a bug must affect this record only
        key_type = int.from_bytes(key[:_KEY_TYPE_BYTES], signed=True)
        _count_error(batch, key_type, error, 1, subject)
        return False
    return True


def _fall_back(batch: Batch, records: list[Record], unread: set[bytes]) -> None:
    """Decode for each of these keys the newest readable one of its earlier values."""
    last_seen: set[bytes] = set()
    for key, value in reversed(records):
        if key is None or key not in unread:
            continue
        if key not in last_seen:  # the unreadable value, which is already counted
            last_seen.add(key)
        elif _apply(batch, key, value):
            unread.remove(key)


def _count_error(
    batch: Batch, key_type: int | None, error: Exception, count: int, subject: object = None
) -> None:
    kind = (key_type, error_code(error))
    batch.errors[kind] = batch.errors.get(kind, 0) + count
    if len(batch.samples) < _SAMPLES:
        batch.samples.append(str(error) if subject is None else f"{subject!r}: {error}")
