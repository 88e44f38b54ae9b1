"""Skip record batches that would be too large after decompression.

aiokafka decompresses a whole batch at once, without a limit. A few KB can become GBs, for which the
system kills the process. So brokers' answers are checked before aiokafka's consumer gets them.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer
from aiokafka.record.util import calc_crc32c

_FETCH_API = 1
#: Offset, length, leader epoch, magic, CRC; attributes, last offset delta, two timestamps,
#: producer id and epoch, sequence, number of records. Source: Kafka's ``DefaultRecordBatch``.
_HEAD = struct.Struct(">qiibI")
_BODY = struct.Struct(">hiqqqhii")
_LENGTH_END = 12
_CODEC, _GZIP = 0x07, 1
#: zlib's window bits for data with a gzip header.
_GZIP_BITS = 31
_CHUNK = 1 << 20


class _BatchHeader(NamedTuple):
    """A batch in an answer: where it begins and ends, and the fields of its header."""

    start: int
    end: int
    offset: int
    magic: int
    attributes: int
    last_delta: int


def bound_batches(
    consumer: AIOKafkaConsumer, most_bytes: int, passed_over: Callable[[str], None]
) -> None:
    """Make a consumer skip batches that decompress to more bytes; call it before the start.

    Only batches without compression or with gzip are read, as the service writes them. For each
    skipped batch ``passed_over`` is called with the reason. tests/followers/test_bounded_fetch.py
    fails when aiokafka's internals change.
    """
    send = consumer._client.send

    async def bounded(node_id: object, request: object, **options: object) -> object:
        response = await send(node_id, request, **options)
        if response.API_KEY == _FETCH_API:
            for _, partitions in response.topics:
                for place, (*header, records) in enumerate(partitions):
                    if records:
                        kept, why = await asyncio.to_thread(bounded_records, records, most_bytes)
                        partitions[place] = (*header, kept)
                        for each in why:
                            passed_over(each)
        return response

    consumer._client.send = bounded


def bounded_records(records: bytes, most_bytes: int) -> tuple[bytes, list[str]]:
    """Replace batches that are too large by empty ones; return the bytes and the reasons."""
    kept, why = [], []
    done = 0
    for batch in _batches(records):
        problem = _problem(records, batch, most_bytes)
        if problem:
            kept += [records[done : batch.start], _empty(batch)]
            why.append(f"passed over the records from offset {batch.offset} on: {problem}")
            done = batch.end
    return b"".join((*kept, records[done:])) if kept else records, why


def _batches(records: bytes) -> Iterator[_BatchHeader]:
    """Yield the complete batches."""
    start = 0
    while start + _HEAD.size + _BODY.size <= len(records):
        offset, length, _, magic, _ = _HEAD.unpack_from(records, start)
        attributes, last_delta, *_ = _BODY.unpack_from(records, start + _HEAD.size)
        end = start + _LENGTH_END + length
        if length <= 0 or end > len(records):
            return
        yield _BatchHeader(start, end, offset, magic, attributes, last_delta)
        start = end


def _problem(records: bytes, batch: _BatchHeader, most_bytes: int) -> str:
    if batch.magic < 2:
        return "they are in a format from before Kafka 0.11"
    codec = batch.attributes & _CODEC
    if codec not in (0, _GZIP):
        return f"they are compressed by codec {codec}, and gzip alone is read"
    payload = memoryview(records)[batch.start + _HEAD.size + _BODY.size : batch.end]
    if codec == _GZIP and not _fits(payload, most_bytes):
        return f"they are over {most_bytes} bytes, or not gzip"
    return ""


def _fits(compressed: memoryview, most_bytes: int) -> bool:
    """Return whether gzip data decompress to at most ``most_bytes``, without keeping them."""
    left: bytes | memoryview = compressed
    size = 0
    while True:
        stream = zlib.decompressobj(_GZIP_BITS)
        while left and not stream.eof:
            try:
                size += len(stream.decompress(left, _CHUNK))
            except zlib.error:
                return False
            left = stream.unconsumed_tail
            if size > most_bytes:
                return False
        if not stream.eof:
            return False
        left = stream.unused_data
        if not left:
            return True


def _empty(batch: _BatchHeader) -> bytes:
    """Return a batch without records with the same offsets, like one after compaction."""
    last_delta = batch.last_delta if batch.magic >= 2 else 0
    body = _BODY.pack(0, last_delta, 0, 0, -1, -1, -1, 0)
    length = _HEAD.size + _BODY.size - _LENGTH_END
    return _HEAD.pack(batch.offset, length, -1, 2, calc_crc32c(body)) + body
