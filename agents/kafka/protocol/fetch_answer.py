"""The answer to Fetch: where each partition's record batches are, and uncompressed batches."""

from __future__ import annotations

import struct
from typing import NamedTuple

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatch

from caughtup.models.errors import DecodeError
from caughtup.models.wire.reader import Reader

_PARTITION = struct.Struct(">ihqq")  # partition, error code, high watermark, last stable offset
_ABORTED_BYTES = 16
_LEAST_BYTES = _PARTITION.size + 8
_BASE_OFFSET, _LAST_OFFSET_DELTA = struct.Struct(">q"), struct.Struct(">23xi")
_LEADER_EPOCH = struct.Struct(">12xi")
_CODEC_AT, _CODEC = 22, 0x07
_MAGIC_AT, _NO_LEADER_EPOCH, _MAGIC = 16, -1, 2
#: Producer epoch and first sequence, which nothing here reads.
_NO_EPOCH = _NO_SEQUENCE = -1
_NO_COMPRESSION = 0


class FetchedPartition(NamedTuple):
    """A partition in the answer: error code, high watermark, and the place of its batches.

    ``start`` and ``end`` are positions in the bytes of the answer.
    """

    error_code: int
    high_watermark: int
    start: int
    end: int


def decode_fetch(data: bytes) -> dict[int, FetchedPartition]:
    """Decode the answer to Fetch v4 about one topic, by partition. Raises DecodeError."""
    reader = Reader(data)
    reader.int32()  # throttle time
    found: dict[int, FetchedPartition] = {}
    for _ in range(reader.array_length(6)):
        reader.string()
        for _ in range(reader.array_length(_LEAST_BYTES)):
            number, error_code, high_watermark, _ = reader.unpack(_PARTITION)
            reader.take(_ABORTED_BYTES * max(0, reader.int32()))
            length = max(0, reader.int32())
            start, end = reader.position, reader.position + length
            if end > len(data):
                raise DecodeError("bad_length", f"{length} bytes of records claimed at {start}")
            reader.position = end
            found[number] = FetchedPartition(error_code, high_watermark, start, end)
    return found


def plain_batch(batch: bytes) -> bytes:
    """Return a batch as an uncompressed batch of format 2.

    ``batch`` may also be a message set of format 0 or 1 (before Kafka 0.11). Raises whatever
    aiokafka raises for bytes that it cannot read.
    """
    magic = batch[_MAGIC_AT]
    if magic == _MAGIC and not batch[_CODEC_AT] & _CODEC:
        return batch
    if magic == _MAGIC:
        source = DefaultRecordBatch(bytearray(batch))
        builder = _builder(source.is_transactional, source.producer_id, len(batch))
        (base_offset,), (last,) = (
            _BASE_OFFSET.unpack_from(batch),
            _LAST_OFFSET_DELTA.unpack_from(batch),
        )
        (leader_epoch,) = _LEADER_EPOCH.unpack_from(batch)
        records = list(source)
    else:
        records = list(LegacyRecordBatch(bytearray(batch), magic))
        builder = _builder(transactional=False, producer_id=-1, size=len(batch))
        base_offset, leader_epoch = records[0].offset, _NO_LEADER_EPOCH
        last = records[-1].offset - base_offset
    for one in records:
        builder.append(one.offset - base_offset, one.timestamp or 0, one.key, one.value, [])
    plain = bytearray(builder.build())
    _BASE_OFFSET.pack_into(plain, 0, base_offset)
    plain[12:16] = leader_epoch.to_bytes(4, signed=True)
    plain[23:27] = last.to_bytes(4, signed=True)
    return bytes(plain)


def _builder(transactional: bool, producer_id: int, size: int) -> DefaultRecordBatchBuilder:
    return DefaultRecordBatchBuilder(
        _MAGIC,
        _NO_COMPRESSION,
        int(transactional),
        producer_id,
        _NO_EPOCH,
        _NO_SEQUENCE,
        max(1 << 30, size),
    )
