"""The answers about share groups (KIP-932): members, start offsets, and lag (KIP-1226)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from caughtup.agents.kafka.protocol.requests import Call, Key, flexible_array, flexible_string
from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX, TopicPartition
from caughtup.models.offsets import LONG_MAX
from caughtup.models.polls.column_reader import Ints
from caughtup.models.wire.bounds import epoch, partitions
from caughtup.models.wire.reader import FlexibleReader
from caughtup.models.wire.share_groups import ShareGroup, ShareGroupMember

#: The first version of DescribeShareGroupOffsets that has the lag.
_LAG_VERSION = 1
_LEAST = 1
_NULL = _NO_TAGS = b"\0"
_START_ENTRY = struct.Struct(">iqi")  # partition, start offset, leader epoch
#: A start offset or a lag that is not known: the group has not begun with the partition.
UNKNOWN = -1


class ShareTopic(NamedTuple):
    """A group's share-partitions of a topic: arrays (int64) of the same length, partitions ascending.

    ``starts`` are the share-partition start offsets, and ``lags`` are in offsets, UNKNOWN where they
    are not known.
    """

    topic: str
    partitions: Ints
    starts: Ints
    lags: Ints


class ShareOffsets(NamedTuple):
    """The answer about one group: an error code, or how far it is in each partition."""

    group: str
    error_code: int
    topics: list[ShareTopic]


def share_offsets_call(groups: Sequence[str], version: int) -> Call:
    """Ask how far share groups are in all their partitions. Version 0: since 4.1; 1: since 4.2."""
    asked = [flexible_string(group) + _NULL + _NO_TAGS for group in groups]
    return Call(Key.DESCRIBE_SHARE_GROUP_OFFSETS, version, True, flexible_array(asked) + _NO_TAGS)


def read_share_group(reader: FlexibleReader) -> tuple[str, int, ShareGroup]:
    """Read one group of the answer to ShareGroupDescribe v1: its name, an error code, the group.

    Raises DecodeError.
    """
    code = reader.int16()
    reader.nullable_string()  # the error in words
    group = reader.string()
    reader.string()  # its state, which its members tell, too
    group_epoch, assignment_epoch = epoch(reader.int32()), epoch(reader.int32())
    assignor = reader.string()
    members = reader.array(_member, _LEAST)
    reader.int32()  # operations
    reader.tagged_fields()
    return group, code, ShareGroup(group_epoch, assignment_epoch, assignor, members)


def _member(reader: FlexibleReader) -> ShareGroupMember:
    member_id = reader.string()
    reader.nullable_string()  # rack
    member_epoch = epoch(reader.int32())
    client_id, host, topics = reader.string(), reader.string(), reader.strings()
    assigned = [one for of_topic in reader.array(_assigned, _LEAST) for one in of_topic]
    reader.tagged_fields()
    reader.tagged_fields()
    return ShareGroupMember(
        member_id, client_id, host, member_epoch, topics, tuple(sorted(assigned))
    )


def _assigned(reader: FlexibleReader) -> list[TopicPartition]:
    reader.uuid()
    topic, numbers = reader.string(), partitions(reader.int32s())
    reader.tagged_fields()
    return [TopicPartition(topic, number) for number in numbers]


def decode_share_offsets(data: bytes, version: int) -> list[ShareOffsets]:
    """Decode the answer to DescribeShareGroupOffsets v0 or v1. Raises DecodeError.

    Partitions with an error of their own are left out.
    """
    reader = FlexibleReader(data)
    reader.int32()  # throttle time
    found = reader.array(lambda one: _group(one, version), _LEAST)
    reader.tagged_fields()
    reader.expect_end()
    return list(found)


def _group(reader: FlexibleReader, version: int) -> ShareOffsets:
    group = reader.string()
    topics = reader.array(lambda one: _topic(one, version), _LEAST)
    code = reader.int16()
    reader.nullable_string()  # the error in words
    reader.tagged_fields()
    return ShareOffsets(group, code, sorted(topics, key=lambda one: one.topic))


def _topic(reader: FlexibleReader, version: int) -> ShareTopic:
    topic = reader.string()
    reader.uuid()
    rows = [row for row in reader.array(lambda one: _partition(one, version), _LEAST) if row]
    reader.tagged_fields()
    table = np.array(sorted(rows), np.int64).reshape(-1, 3)
    return ShareTopic(topic, table[:, 0], table[:, 1], table[:, 2])


def _partition(reader: FlexibleReader, version: int) -> tuple[int, int, int] | None:
    """Read a partition's number, start offset and lag; None for one with an error."""
    number, start, _ = reader.unpack(_START_ENTRY)
    lag = reader.int64() if version >= _LAG_VERSION else UNKNOWN
    code = reader.int16()
    reader.nullable_string()  # the error in words
    reader.tagged_fields()
    if code:
        return None
    if not 0 <= number <= NUMBER_MAX or not UNKNOWN <= start <= LONG_MAX or lag < UNKNOWN:
        raise DecodeError("out_of_range", f"partition {number}: start offset {start}, lag {lag}")
    return number, start, lag
