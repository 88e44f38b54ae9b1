"""The answer to a fetch: where in it the record batches of each partition are."""

from __future__ import annotations

import struct
from typing import NamedTuple

from caughtup.models.errors import DecodeError
from caughtup.models.wire.reader import Reader

_PARTITION = struct.Struct(">ihqq")  # partition, error code, high watermark, last stable offset
_ABORTED = struct.Struct(">qq")  # producer id, first offset
_LEAST_BYTES = _PARTITION.size + 8


class FetchedPartition(NamedTuple):
    """A partition's error code, its aborted transactions, and its batches' place in the answer.

    Aborted transactions are producer ids, each with the offset of its first record; ``start`` and
    ``end`` count bytes.
    """

    error_code: int
    aborted: list[tuple[int, int]]
    start: int
    end: int


def decode_fetched(data: bytes) -> dict[int, FetchedPartition]:
    """Decode the answer to Fetch v4 for one topic, by partition. Raises DecodeError."""
    reader = Reader(data)
    reader.int32()  # for how long the broker holds back what comes next
    found: dict[int, FetchedPartition] = {}
    for _ in range(reader.array_length(6)):
        reader.string()
        for _ in range(reader.array_length(_LEAST_BYTES)):
            number, error_code, _, _ = reader.unpack(_PARTITION)
            aborted = [reader.unpack(_ABORTED) for _ in range(max(0, reader.int32()))]
            length = max(0, reader.int32())
            start, end = reader.position, reader.position + length
            if end > len(data):
                raise DecodeError("bad_length", f"{length} bytes of records claimed at {start}")
            reader.position = end
            found[number] = FetchedPartition(error_code, aborted, start, end)
    return found
