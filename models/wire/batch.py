"""Reads a whole batch of ``__consumer_offsets`` records at once: what did it change?

The agents and the Spark jobs both read the topic with this, a poll or an Arrow batch at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from caughtup.models.errors import DecodeError, error_code
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupRecord,
    decode_consumer_group_record,
)
from caughtup.models.wire.consumer_offsets import (
    GroupKey,
    OffsetCommit,
    OffsetKey,
    decode_key,
    decode_offset_commit,
    quick_offset_commit,
    quick_offset_key,
)
from caughtup.models.wire.group_metadata import GroupMetadata, decode_group_metadata
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    RecordType,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.models.wire.streams_group_records import (
    StreamsGroupRecord,
    decode_streams_group_record,
)

#: A record's key and value, as they stand in the log.
Record = tuple[bytes | None, bytes | None]

_SAMPLES = 5
_KEY_TYPE_BYTES = 2
_LEGACY_OFFSET_COMMIT = b"\x00\x00"
_OFFSET_COMMIT = b"\x00\x01"
# Share groups don't concern us: their records are known, but only counted.
_TYPES_READ = frozenset(t for t in RecordType if not t.name.startswith("SHARE_GROUP"))
_PREFIXES_READ = frozenset(t.to_bytes(_KEY_TYPE_BYTES) for t in _TYPES_READ)
_CONSUMER_GROUP_KEYS = (ConsumerGroupKey, ConsumerGroupMemberKey, ConsumerGroupRegularExpressionKey)
_STREAMS_GROUP_KEYS = (StreamsGroupKey, StreamsGroupMemberKey)


@dataclass(slots=True)
class Batch:
    """What a batch of records changed.

    ``commits``, ``groups`` (classic ones), ``consumer_group_records`` and ``streams_group_records``
    hold the last readable value of each key, None for a tombstone. ``records`` counts, by key type,
    every record whose key type could be read; ``skipped`` those of them whose type isn't read here:
    share groups' and unknown ones. ``errors`` counts by key type (None where even that could not be
    read; 1 for 0, which means the same) and code; ``samples`` describes the first few. Of a key's
    values only the last is looked at, and earlier ones only while that can't be read.
    """

    commits: dict[OffsetKey, OffsetCommit | None] = field(default_factory=dict)
    groups: dict[str, GroupMetadata | None] = field(default_factory=dict)
    consumer_group_records: dict[
        ConsumerGroupKey | ConsumerGroupMemberKey | ConsumerGroupRegularExpressionKey,
        ConsumerGroupRecord | None,
    ] = field(default_factory=dict)
    streams_group_records: dict[
        StreamsGroupKey | StreamsGroupMemberKey, StreamsGroupRecord | None
    ] = field(default_factory=dict)
    records: dict[int, int] = field(default_factory=dict)
    skipped: dict[int, int] = field(default_factory=dict)
    errors: dict[tuple[int | None, str], int] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)


def decode_batch(records: Iterable[Record]) -> Batch:
    """Read records in the order of their partition; a broken one is counted and skipped.

    What the batch changes doesn't depend on where batches are cut: a value that can't be read
    leaves its key with the last value that can. Never raises for what the bytes hold.
    """
    records = list(records)
    return decode_columns([key for key, _ in records], [value for _, value in records])


def decode_columns(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> Batch:
    """Decode as ``decode_batch`` does, from keys and values in two lists: it is faster."""
    batch = Batch()
    # dict() keeps the last value of each key, without a step of Python's per record.
    last = dict(zip(keys, values, strict=True))
    prefixes = _prefixes(keys, last)
    _count(batch, prefixes)
    if _LEGACY_OFFSET_COMMIT in prefixes:
        keys = [_as_offset_commit(key) for key in keys]
        last = dict(zip(keys, values, strict=True))
    unread = _apply_last(batch, last)
    if unread:
        _fall_back(batch, list(zip(keys, values, strict=True)), unread)
    return batch


def _prefixes(keys: Sequence[bytes | None], distinct: Iterable[bytes | None]) -> Counter[bytes]:
    """Count records by their key's type, which is the first bytes of the key."""
    others = {key for key in distinct if not (key and key.startswith(_OFFSET_COMMIT))}
    found = Counter[bytes]()
    if others:  # most records are commits: those aren't looked at one by one
        for key in filter(others.__contains__, keys):
            found[key[:_KEY_TYPE_BYTES] if key else b""] += 1
    found[_OFFSET_COMMIT] = len(keys) - found.total()
    return +found


def _count(batch: Batch, prefixes: Counter[bytes]) -> None:
    for prefix, count in sorted(prefixes.items()):
        if len(prefix) < _KEY_TYPE_BYTES:
            error = DecodeError("truncated", f"{count} keys end before their type")
            _count_error(batch, None, error, count)
            continue
        key_type = int.from_bytes(prefix, signed=True)
        batch.records[key_type] = count
        if key_type not in _TYPES_READ:
            batch.skipped[key_type] = count


def _as_offset_commit(key: bytes | None) -> bytes | None:
    """Return the same bytes for both types of an offset commit's key: they name the same thing."""
    if key and key.startswith(_LEGACY_OFFSET_COMMIT):
        return _OFFSET_COMMIT + key[_KEY_TYPE_BYTES:]
    return key


def _apply_last(batch: Batch, last: Mapping[bytes | None, bytes | None]) -> set[bytes]:
    """Read the last record of each key into the batch; name the keys of those that can't be."""
    unread = set()
    commits = batch.commits
    for key, value in last.items():
        if not key:
            continue
        # Nearly all are commits as brokers write them now: for those, no step more than needed.
        offset_key = quick_offset_key(key)
        if offset_key is not None:
            commit = None if value is None else quick_offset_commit(value)
            if commit is not None or value is None:
                commits[offset_key] = commit
                continue
        if key[:_KEY_TYPE_BYTES] in _PREFIXES_READ and not _apply(batch, key, value):
            unread.add(key)
    return unread


def _apply(batch: Batch, key: bytes, value: bytes | None) -> bool:
    """Read one record into the batch; tell whether it could be read."""
    subject: object = key
    try:
        subject = decoded = decode_key(key)
        if isinstance(decoded, OffsetKey):
            commit = None if value is None else decode_offset_commit(value)
            batch.commits[decoded] = commit
        elif isinstance(decoded, GroupKey):
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
    except Exception as error:  # noqa: BLE001 - a bug of ours costs this record alone, too
        key_type = int.from_bytes(key[:_KEY_TYPE_BYTES], signed=True)
        _count_error(batch, key_type, error, 1, subject)
        return False
    return True


def _fall_back(batch: Batch, records: list[Record], unread: set[bytes]) -> None:
    """Apply for each of these keys the newest of its earlier values that can be read."""
    last_seen: set[bytes] = set()
    for key, value in reversed(records):
        if key is None or key not in unread:
            continue
        if key not in last_seen:  # the value that couldn't be read, counted already
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
