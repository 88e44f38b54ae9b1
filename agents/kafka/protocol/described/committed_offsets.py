"""The answer to OffsetFetch: all committed offsets of groups, a topic at a time as columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.agents.kafka.protocol.described.calls import MANY_GROUPS_VERSION
from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX
from caughtup.models.polls.asked import TopicOffsets
from caughtup.models.polls.column_reader import Ints
from caughtup.models.polls.commit_columns import NO_OFFSET
from caughtup.models.wire.reader import Reader

#: A partition without metadata: number, offset, leader epoch, metadata's length, error, no tags.
_NUMBER_AT, _OFFSET_AT, _LENGTH_AT = 0, 4, 16
_FIXED_BYTES = 20
_MOST_SHORT = 0x7F
_ERROR_BYTES = 2
_LEAST_CLASSIC_BYTES = 20


class CommittedOffsets(NamedTuple):
    """The answer about one group: an error code, or all its commits on topics that we may describe.

    ``group`` is empty where the answer does not name it. ``refused`` counts the partitions with an
    error of their own.
    """

    group: str
    error_code: int
    topics: list[TopicOffsets]
    refused: int


def decode_committed_offsets(data: bytes, version: int) -> list[CommittedOffsets]:
    """Decode the answer to OffsetFetch v5, about one group, or v8. Raises DecodeError."""
    reader = Reader(data, flexible=version >= MANY_GROUPS_VERSION)
    reader.int32()  # throttle time
    if version < MANY_GROUPS_VERSION:
        found = [_group(reader, "")]
    else:
        found = [_group(reader, reader.string()) for _ in range(reader.array_length(1))]
        reader.tagged_fields()
    reader.expect_end()
    return found


def _group(reader: Reader, group: str) -> CommittedOffsets:
    topics, refused = [], 0
    for _ in range(reader.array_length(1)):
        name = reader.string()
        count = reader.array_length(_LEAST_CLASSIC_BYTES)
        numbers, offsets, errors = _columns(reader, count) or _one_by_one(reader, count)
        reader.tagged_fields()
        there = (errors == 0) & (offsets != NO_OFFSET)
        if (offsets[there] < 0).any() or (numbers < 0).any() or (numbers > NUMBER_MAX).any():
            raise DecodeError("out_of_range", f"a commit of {name!r:.80}")
        refused += int(np.count_nonzero(errors))
        numbers, offsets = numbers[there], offsets[there]
        order = np.argsort(numbers, kind="stable")
        topics.append(TopicOffsets(name, numbers[order], offsets[order]))
    code = reader.int16()
    reader.tagged_fields()
    return CommittedOffsets(group, code, sorted(topics, key=lambda one: one.topic), refused)


def _columns(reader: Reader, count: int) -> tuple[Ints, Ints, Ints] | None:
    """Read partitions whose metadata is equally long all at once; None, nothing read, for others."""
    start = reader.position
    if not reader.flexible or not count or reader.remaining() < _FIXED_BYTES:
        return None
    length = max(1, reader.data[start + _LENGTH_AT])
    stride = _FIXED_BYTES + length - 1
    if length > _MOST_SHORT or reader.remaining() < count * stride:
        return None
    rows = np.frombuffer(reader.data, np.uint8, count * stride, start).reshape(count, stride)
    lengths = rows[:, _LENGTH_AT]
    # Null and empty metadata are one byte, 0 and 1.
    if (np.maximum(lengths, 1) != length).any():
        return None
    if rows[:, -1].any():  # tagged fields
        return None
    reader.position += count * stride
    errors = _numbers(rows[:, -1 - _ERROR_BYTES : -1], ">i2")
    return (
        _numbers(rows[:, _NUMBER_AT:_OFFSET_AT], ">i4"),
        _numbers(rows[:, _OFFSET_AT : _OFFSET_AT + 8], ">i8"),
        errors,
    )


def _numbers(columns: NDArray[np.uint8], kind: str) -> Ints:
    return np.ascontiguousarray(columns).view(kind).reshape(-1).astype(np.int64)


def _one_by_one(reader: Reader, count: int) -> tuple[Ints, Ints, Ints]:
    read = np.empty((3, count), np.int64)
    for row in range(count):
        number, offset, _ = reader.int32(), reader.int64(), reader.int32()
        reader.nullable_string()
        error = reader.int16()
        reader.tagged_fields()
        read[:, row] = number, offset, error
    return read[0], read[1], read[2]
