"""Record batches (format 2) as brokers send them: where each record's key and value are.

Batches are walked through one after the other, and all that is in them is read by columns. Source:
Kafka's ``DefaultRecordBatch`` and ``DefaultRecord``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.models.errors import DecodeError
from caughtup.models.polls.column_reader import ColumnReader, Ints, Rows
from caughtup.models.polls.frames import LENGTH_BYTES, find_frames
from caughtup.models.polls.records import NULL, FramedRecords

_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "u1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
#: A batch's length counts what comes after itself; its magic and its attributes are where they are.
_LENGTH = struct.Struct(">8xi")
_MAGIC_AT, _ATTRIBUTES_AT = 16, 22
_MAGIC = 2
_COMPRESSION, _TRANSACTIONAL, _CONTROL = 0x07, 0x10, 0x20
#: The most bytes of an integer of 64 bits.
_VARLONG = 10


class Section(NamedTuple):
    """Where in an answer the batches of one partition are: ``start`` to ``end``, in bytes.

    ``position`` is the offset that was asked for. ``aborted`` are transactions: producer ids, each
    with the offset of its first record.
    """

    start: int
    end: int
    position: int
    aborted: Sequence[tuple[int, int]] = ()


class FetchedRecords(NamedTuple):
    """Records in the order of their sections, and the offset that comes next in each section.

    ``refused`` says of a section why its records end before its last batch does; None if they
    don't.
    """

    records: FramedRecords
    positions: list[int]
    refused: list[str | None]


def decode_record_batches(data: bytes, sections: Iterable[Section]) -> FetchedRecords:
    """Find the records of an answer's sections, without control records and aborted transactions.

    A section ends before a batch that is compressed or of an older format, which it says. A batch
    that is cut off ends it, too, and is to be asked for again. Raises DecodeError ``bad_batch`` for
    bytes that are no batches.
    """
    starts: list[int] = []
    positions: list[int] = []
    refused: list[str | None] = []
    asked: list[tuple[Section, slice]] = []
    for section in sections:
        first = len(starts)
        refused.append(_walk(data, section, starts))
        asked.append((section, slice(first, len(starts))))
    start = np.array(starts, np.int64)
    headers = _headers(data, start)
    last_offset = headers["base_offset"].astype(np.int64) + headers["last_offset_delta"]
    taken = headers["attributes"] & _CONTROL == 0
    wanted = np.zeros(len(starts), np.int64)
    for section, batches in asked:
        following = last_offset[batches] + 1
        positions.append(int(following.max(initial=section.position)))
        wanted[batches] = section.position
        if section.aborted:
            _leave_aborted(headers[batches], taken[batches], section.aborted)
    records = _find_records(data, start[taken], headers[taken], wanted[taken])
    return FetchedRecords(records, positions, refused)


def _walk(data: bytes, section: Section, starts: list[int]) -> str | None:
    """Add where each whole batch of a section starts; return why it ends before another."""
    at, end, unpack = section.start, section.end, _LENGTH.unpack_from
    least = _HEADER.itemsize - _LENGTH.size
    while end - at > _ATTRIBUTES_AT:
        if data[at + _MAGIC_AT] != _MAGIC:
            return f"a batch of format {data[at + _MAGIC_AT]}"
        if data[at + _ATTRIBUTES_AT] & _COMPRESSION:
            return "a compressed batch"
        (length,) = unpack(data, at)
        if length < least:
            raise DecodeError("bad_batch", f"a batch of {length} bytes")
        following = at + _LENGTH.size + length
        if following > end:
            break
        starts.append(at)
        at = following
    return None


def _headers(data: bytes, start: Ints) -> NDArray[Any]:
    if not start.size:
        return np.empty(0, _HEADER)
    count = len(data) - _HEADER.itemsize + 1
    found: NDArray[Any] = np.ndarray((count,), _HEADER, data, strides=(1,))[start]
    return found


def _leave_aborted(headers: NDArray[Any], taken: Rows, aborted: Sequence[tuple[int, int]]) -> None:
    """Leave out the batches of aborted transactions. Source: ``CompletedFetch``."""
    coming = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    open_now: set[int] = set()
    for index, header in enumerate(headers):
        last_offset = int(header["base_offset"]) + int(header["last_offset_delta"])
        while coming and coming[-1][1] <= last_offset:
            open_now.add(coming.pop()[0])
        producer = int(header["producer_id"])
        if producer in open_now:
            if header["attributes"] & _CONTROL:
                open_now.discard(producer)  # its end
            elif header["attributes"] & _TRANSACTIONAL:
                taken[index] = False


def _find_records(data: bytes, start: Ints, headers: NDArray[Any], position: Ints) -> FramedRecords:
    """Find the keys and values of all records of batches, from each batch's position on."""
    end = start + _LENGTH.size + headers["length"]
    count = headers["count"].astype(np.int64)
    frames = find_frames(data, start + _HEADER.itemsize, end, count)
    raw, all_good = np.frombuffer(data, np.uint8), np.ones(len(frames), np.bool_)
    reader = ColumnReader(raw, frames, np.repeat(end, count), all_good)
    reader = ColumnReader(raw, *reader.span(reader.varint(LENGTH_BYTES)), reader.good)
    reader.uint8()  # attributes, of which there are none
    reader.uvarint(_VARLONG)  # its time, which isn't read
    offset = reader.varint(LENGTH_BYTES)
    key_start, key_end = _span(reader)
    value_start, value_end = _span(reader)
    if not reader.good.all():
        raise DecodeError("bad_batch", "a record that isn't as long as its parts")
    records = FramedRecords(data, key_start, key_end, value_start, value_end)
    base_offset = headers["base_offset"].astype(np.int64)
    if (base_offset >= position).all():
        return records
    return records.select(np.repeat(base_offset - position, count) + offset >= 0)


def _span(reader: ColumnReader) -> tuple[Ints, Ints]:
    """Read where bytes are that may be null."""
    length = reader.varint(LENGTH_BYTES)
    null = length == NULL
    some_null = null.any()
    if some_null:
        length[null] = 0
    start, end = reader.span(length)
    if some_null:
        start, end = start.copy(), end.copy()
        start[null] = end[null] = NULL
    return start, end
