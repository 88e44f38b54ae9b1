"""Keys of ``__consumer_offsets``, and the values of committed offsets."""

from __future__ import annotations

import struct
import sys
from typing import NamedTuple

from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX
from caughtup.models.wire.bounds import LATEST_MS, bounded, time_ms
from caughtup.models.wire.bounds import partition as bounded_partition
from caughtup.models.wire.reader import Reader
from caughtup.models.wire.record_keys import NewGroupKey, RecordType, read_new_group_key

#: Key types of a committed offset; as plain ints, which compare faster.
OFFSET_COMMIT_TYPES = (int(RecordType.LEGACY_OFFSET_COMMIT), int(RecordType.OFFSET_COMMIT))

_NEWEST_OFFSET_COMMIT = 4
_FIRST_FLEXIBLE = 4
_TOPIC_ID_TAG = 0
_TOPIC_ID_BYTES = 16
_NO_TOPIC_ID = bytes(_TOPIC_ID_BYTES)

_KEY_HEAD = struct.Struct(">hh")  # the key's type, the group's length
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
# Version 3 up to the metadata, version 4 likewise, then what follows the metadata in each. The
# tail of version 4 is the one that brokers write: one tagged field, tag 0, 16 bytes (plus one).
_HEAD_V3 = struct.Struct(">hqih")
_HEAD_V4 = struct.Struct(">hqiB")
_TAIL_V3 = struct.Struct(">q")
_TAIL_V4 = struct.Struct(">q3s16s")
_ONE_TOPIC_ID = bytes((1, _TOPIC_ID_TAG, _TOPIC_ID_BYTES))
# Version 4 as a whole when there is no metadata, as nearly all commits have none.
_PLAIN_V4 = struct.Struct(">hqiBq3s16s")
_NO_METADATA = 1

# A cache: the start of a key, up to the partition → its group and topic. Cleared when it is full.
_NAMES: dict[bytes, tuple[str, str]] = {}
_NAMES_KEPT = 8_192
# Takes half the time of a named tuple's own constructor.
_new = tuple.__new__


class OffsetKey(NamedTuple):
    """The key of a committed offset."""

    group: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    """The key of a classic group's metadata."""

    group: str


class OtherKey(NamedTuple):
    """A key of an unknown type."""

    key_type: int


class OffsetCommit(NamedTuple):
    """A committed offset.

    ``leader_epoch`` and ``expire_timestamp_ms`` are -1 if absent (before version 3; in all but 1).
    Timestamps are milliseconds since the epoch. ``topic_id`` is 16 bytes, or None.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: bytes | None


Key = OffsetKey | GroupKey | NewGroupKey | OtherKey


def decode_key(data: bytes) -> Key:
    """Decode a record's key.

    A key has only one form: trailing bytes are refused, so that equal keys have equal bytes (except
    for types 0 and 1, which mean the same). Raises DecodeError (``out_of_range`` for an impossible
    partition). Source: Kafka's ``CoordinatorRecordType``.
    """
    return quick_offset_key(data) or _any_key(data)


def quick_offset_key(data: bytes) -> OffsetKey | None:
    """Decode a committed offset's key, much faster than field by field; None for anything else."""
    names = _NAMES.get(data[:-4])
    if names is None:
        names = _learn_names(data[:-4])
        if names is None:
            return None
    group, topic = names
    (partition,) = _INT32.unpack_from(data, len(data) - 4)
    if not 0 <= partition <= NUMBER_MAX:
        return None
    return _new(OffsetKey, (group, topic, partition))


def _learn_names(head: bytes) -> tuple[str, str] | None:
    """Decode and cache the names in a committed offset's key without its partition."""
    names = head_names(head)
    if names is not None:
        if len(_NAMES) >= _NAMES_KEPT:
            _NAMES.clear()
        _NAMES[head] = names
    return names


def head_names(head: bytes) -> tuple[str, str] | None:
    """Return the group and the topic in a committed offset's key without its partition.

    They are the same in the keys of all of a topic's partitions, and interned, since the state is
    looked up by them. None for anything else.
    """
    try:
        key_type, length = _KEY_HEAD.unpack_from(head)
        group_end = _KEY_HEAD.size + length
        (topic_length,) = _INT16.unpack_from(head, group_end)
        topic_start = group_end + _INT16.size
        if (
            key_type not in OFFSET_COMMIT_TYPES
            or length < 0
            or topic_length < 0
            or topic_start + topic_length != len(head)
        ):
            return None
        group = head[_KEY_HEAD.size : group_end].decode()
        topic = head[topic_start:].decode()
    except (struct.error, UnicodeDecodeError):
        return None
    return sys.intern(group), sys.intern(topic)


def _any_key(data: bytes) -> Key:
    reader = Reader(data)
    key_type = reader.int16()
    key: Key | None
    if key_type in OFFSET_COMMIT_TYPES:
        group, topic = sys.intern(reader.string()), sys.intern(reader.string())
        key = OffsetKey(group, topic, bounded_partition(reader.int32()))
    elif key_type == RecordType.GROUP_METADATA:
        key = GroupKey(sys.intern(reader.string()))
    else:
        key = read_new_group_key(reader, key_type)
    if key is None:
        return OtherKey(key_type)
    reader.expect_end()
    return key


def decode_offset_commit(data: bytes) -> OffsetCommit:
    """Decode a committed offset, versions 0 to 4 of ``OffsetCommitValue``.

    Trailing bytes are tolerated, as Kafka's coordinator tolerates them. Raises DecodeError:
    ``unknown_version`` for a later version, ``out_of_range`` for an offset below 0 or an epoch
    below -1, ``bad_time`` for a commit before 1970 or after the year 9999. A broker checks none of
    these numbers, and a consumer treats an offset below 0 as none. Source: Kafka's
    ``OffsetCommitValue``.
    """
    return quick_offset_commit(data) or _any_offset_commit(data)


def quick_offset_commit(data: bytes) -> OffsetCommit | None:
    """Decode the two forms that brokers have written since 2.1; None for anything else.

    Nearly all records have one of them, and this takes a third of the time or less.
    """
    if len(data) == _PLAIN_V4.size:
        version, offset, epoch, length, timestamp, tags, topic_id = _PLAIN_V4.unpack(data)
        if (
            version == 4
            and length == _NO_METADATA
            and tags == _ONE_TOPIC_ID
            and offset >= 0 <= timestamp <= LATEST_MS
            and epoch >= -1
        ):
            known = None if topic_id == _NO_TOPIC_ID else topic_id
            return _new(OffsetCommit, (offset, epoch, "", timestamp, -1, known))
    try:
        if data[1] == 4:
            version, offset, epoch, length = _HEAD_V4.unpack_from(data)
            end = _HEAD_V4.size + length - 1
            timestamp, tags, topic_id = _TAIL_V4.unpack_from(data, end)
            if version != 4 or not 0 < length < 0x80 or tags != _ONE_TOPIC_ID:
                return None
            if not offset >= 0 <= timestamp <= LATEST_MS or epoch < -1:
                return None
            metadata = data[_HEAD_V4.size : end].decode()
            known = None if topic_id == _NO_TOPIC_ID else topic_id
            return OffsetCommit(offset, epoch, metadata, timestamp, -1, known)
        version, offset, epoch, length = _HEAD_V3.unpack_from(data)
        if version != 3 or length < 0:
            return None
        end = _HEAD_V3.size + length
        (timestamp,) = _TAIL_V3.unpack_from(data, end)
        if not offset >= 0 <= timestamp <= LATEST_MS or epoch < -1:
            return None
        metadata = data[_HEAD_V3.size : end].decode()
        return OffsetCommit(offset, epoch, metadata, timestamp, -1, None)
    except (IndexError, struct.error, UnicodeDecodeError):
        return None


def _any_offset_commit(data: bytes) -> OffsetCommit:
    reader = Reader(data)
    version = reader.int16()
    if not 0 <= version <= _NEWEST_OFFSET_COMMIT:
        raise DecodeError("unknown_version", f"offset commit version {version}")
    reader.flexible = version >= _FIRST_FLEXIBLE
    offset = bounded("offset", reader.int64(), 0)
    leader_epoch = bounded("leader epoch", reader.int32(), -1) if version >= 3 else -1
    metadata = reader.string()
    commit_timestamp_ms = time_ms(reader.int64())
    # The time of the commit plus a retention set by the client, which may have overflowed.
    expire_timestamp_ms = max(reader.int64(), -1) if version == 1 else -1
    topic_id = reader.tagged_fields().get(_TOPIC_ID_TAG)
    if topic_id is not None and len(topic_id) != _TOPIC_ID_BYTES:
        raise DecodeError("bad_length", f"a topic id of {len(topic_id)} bytes")
    return OffsetCommit(
        offset,
        leader_epoch,
        metadata,
        commit_timestamp_ms,
        expire_timestamp_ms,
        None if topic_id == _NO_TOPIC_ID else topic_id,
    )
