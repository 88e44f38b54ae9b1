"""Record batches of ``__consumer_offsets`` from brokers, and the records in them that count.

Batches are read one after the other, and all records in them by columns. Offset commits of a
transaction count once it has committed (``pending_commits``). Source: Kafka's
``DefaultRecordBatch`` and ``DefaultRecord``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.models.errors import DecodeError
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import ColumnReader, Ints
from caughtup.models.polls.pending_commits import (
    ABORT,
    COMMIT,
    LoggedRecords,
    PendingCommit,
    PendingCommits,
    Transactions,
    framed,
)
from caughtup.models.polls.record_starts import LENGTH_BYTES, find_record_starts
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
#: A batch's length counts the bytes after itself; the positions of its magic and its attributes.
_LENGTH = struct.Struct(">8xi")
_MAGIC_AT, _ATTRIBUTES_AT, _LAST_OFFSET_AT = 16, 22, 23
_MAGIC = 2
#: The fewest bytes after a batch's length: in format 2, and in older ones.
_LEAST_CURRENT_BYTES, _LEAST_BYTES = _HEADER.itemsize - _LENGTH.size, 14
_COMPRESSION, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
#: The most bytes of an integer of 64 bits.
_VARLONG = 10
#: The marker of a batch without one.
_NO_END = -1
NO_LEADER_EPOCH = -1


#: Converts a compressed batch, or one of an older format, to an uncompressed one of format 2.
Unpack = Callable[[bytes], bytes]


class Section(NamedTuple):
    """The batches of one partition in an answer: from ``start`` to ``end``, in bytes.

    ``position`` is the requested offset; ``pending`` are the commits of the partition's open
    transactions.
    """

    start: int
    end: int
    position: int
    pending: PendingCommits


class LogRange(NamedTuple):
    """Offsets of a partition, from ``start`` to before ``until``."""

    partition: TopicPartition
    start: int
    until: int


class LogRecords(NamedTuple):
    """The records of a log that count from now on: ``released`` commits, then those of ``logged``.

    ``position`` is the next offset to read.
    """

    released: list[PendingCommit]
    logged: LoggedRecords
    position: int


class FetchedRecords(NamedTuple):
    """Records in the order of their sections, and each section's next offset.

    ``leader_epochs`` are those of each section's last batch, NO_LEADER_EPOCH without one.
    """

    records: FramedRecords
    positions: list[int]
    leader_epochs: list[int]


def decode_record_batches(
    data: bytes, sections: Iterable[Section], unpack: Unpack, *, unpack_all: bool = False
) -> FetchedRecords:
    """Return the records of an answer's sections that count by now, in the order of each log.

    An offset commit of an open transaction is put into ``Section.pending``; commits of a
    transaction are returned when its commit marker is read, in this answer or a later one. A
    truncated batch ends its section, and has to be fetched again. ``unpack`` is called for batches
    that are compressed or of an older format. Raises DecodeError ``bad_batch`` for bytes that are
    no batches, and the errors of ``unpack``; pending commits are unchanged then. With
    ``unpack_all`` it is called for every batch (to replace unreadable ones), and a section ends
    before a batch with an impossible length.
    """
    asked = list(sections)
    data, start, batches = _whole_batches(data, asked, unpack, unpack_all=unpack_all)
    headers = _headers(data, start)
    last_offset = headers["base_offset"].astype(np.int64) + headers["last_offset_delta"]
    is_control = headers["attributes"] & _CONTROL != 0
    wanted = np.zeros(len(start), np.int64)
    positions, leader_epochs = [], []
    for section, of_section in zip(asked, batches, strict=True):
        epochs = headers["leader_epoch"][of_section]
        leader_epochs.append(int(epochs[-1]) if len(epochs) else NO_LEADER_EPOCH)
        positions.append(int((last_offset[of_section] + 1).max(initial=section.position)))
        wanted[of_section] = section.position
    plain = np.flatnonzero(~is_control)
    logged = _find_records(data, start, headers, plain, wanted)
    if (headers["attributes"] & (_CONTROL | _TRANSACTIONAL)).any():
        ends = _transaction_ends(data, start, headers, np.flatnonzero(is_control), wanted)
        records = _apply_transactions(logged, headers, ends, asked, batches)
    elif any(len(section.pending) for section in asked):
        ends = np.full(len(start), _NO_END, np.int64)
        records = _apply_transactions(logged, headers, ends, asked, batches)
    else:
        records = replace(logged.records, offset=logged.offset)
    return FetchedRecords(records, positions, leader_epochs)


def decode_log(
    data: bytes, section: Section, unpack: Unpack, until: int, *, unpack_all: bool = False
) -> LogRecords:
    """Return the records of one section that count by now, below an offset, with their timestamps.

    Otherwise as ``decode_record_batches``.
    """
    data, start, _ = _whole_batches(data, [section], unpack, unpack_all=unpack_all)
    headers = _headers(data, start)
    is_before = headers["base_offset"] < until
    start, headers = start[is_before], headers[is_before]
    last_offset = headers["base_offset"].astype(np.int64) + headers["last_offset_delta"]
    position = int((last_offset + 1).max(initial=section.position))
    is_control = headers["attributes"] & _CONTROL != 0
    wanted = np.full(len(start), section.position, np.int64)
    batches = np.flatnonzero(~is_control)
    logged = _find_records(data, start, headers, batches, wanted, with_times=True)
    if position > until:
        logged = logged.select(logged.offset < until)
    released: list[PendingCommit] = []
    if len(section.pending) or (headers["attributes"] & (_CONTROL | _TRANSACTIONAL)).any():
        ends = _transaction_ends(data, start, headers, np.flatnonzero(is_control), wanted)
        released, rows = section.pending.apply(logged, _transactions(headers, ends))
        logged = logged.select(rows)
    reaches_end = position >= until or not is_before.all()
    return LogRecords(released, logged, until if reaches_end else position)


def readable(batch: bytes) -> bytes:
    """Return a batch if its records are readable, otherwise one without records in its place."""
    try:
        headers, first = _headers(batch, np.zeros(1, np.int64)), np.zeros(1, np.int64)
        _find_records(batch, first, headers, first, first)
    except DecodeError:
        return without_records(batch)
    return batch


def without_records(batch: bytes) -> bytes:
    """Return a batch with the same offsets and without records."""
    header = np.zeros(1, _HEADER)
    if batch[_MAGIC_AT] == _MAGIC and len(batch) >= _HEADER.itemsize:
        header[0] = np.frombuffer(batch, _HEADER, 1)[0]
    else:
        (header["base_offset"],) = struct.unpack_from(">q", batch)
        header["magic"], header["producer_id"], header["leader_epoch"] = _MAGIC, -1, NO_LEADER_EPOCH
    header["attributes"], header["count"] = 0, 0
    header["length"] = _LEAST_CURRENT_BYTES
    header["last_offset_delta"] = np.maximum(header["last_offset_delta"], 0)
    return header.tobytes()


def _whole_batches(
    data: bytes, sections: Iterable[Section], unpack: Unpack, *, unpack_all: bool
) -> tuple[bytes, Ints, list[slice]]:
    """Return the data with what was unpacked, whole batches' starts in it, and each section's."""
    starts: list[int] = []
    of_sections: list[slice] = []
    unpacked = bytearray()
    for section in sections:
        first = len(starts)
        _walk(data, section, starts, unpacked, unpack, unpack_all=unpack_all)
        of_sections.append(slice(first, len(starts)))
    return data + bytes(unpacked) if unpacked else data, np.array(starts, np.int64), of_sections


def _walk(
    data: bytes,
    section: Section,
    starts: list[int],
    unpacked: bytearray,
    unpack: Unpack,
    *,
    unpack_all: bool,
) -> None:
    """Append the starts of a section's whole batches: in the data, or after it if unpacked."""
    at, end, length_of = section.start, section.end, _LENGTH.unpack_from
    while end - at > _ATTRIBUTES_AT:
        (length,) = length_of(data, at)
        following = at + _LENGTH.size + length
        if following > end:
            break
        is_current = data[at + _MAGIC_AT] == _MAGIC
        if length < (_LEAST_CURRENT_BYTES if is_current else _LEAST_BYTES):
            if unpack_all:
                break
            raise DecodeError("bad_batch", f"a batch of {length} bytes")
        if is_current and not data[at + _ATTRIBUTES_AT] & _COMPRESSION and not unpack_all:
            starts.append(at)
        else:
            starts.append(len(data) + len(unpacked))
            unpacked += unpack(data[at:following])
        at = following


def _headers(data: bytes, start: Ints) -> NDArray[np.void]:
    if not start.size:
        return np.empty(0, _HEADER)
    count = len(data) - _HEADER.itemsize + 1
    found: NDArray[np.void] = np.ndarray((count,), _HEADER, data, strides=(1,))[start]
    return found


def _find_records(
    data: bytes,
    starts: Ints,
    headers: NDArray[np.void],
    batches: Ints,
    positions: Ints,
    *,
    with_times: bool = False,
) -> LoggedRecords:
    """Return all records of some batches, from each batch's position on."""
    headers, start, position = headers[batches], starts[batches], positions[batches]
    end = start + _LENGTH.size + headers["length"]
    count = headers["count"].astype(np.int64)
    at = find_record_starts(data, start + _HEADER.itemsize, end, count)
    raw, all_good = np.frombuffer(data, np.uint8), np.ones(len(at), np.bool_)
    reader = ColumnReader(raw, at, np.repeat(end, count), all_good)
    reader = ColumnReader(raw, *reader.span(reader.varint(LENGTH_BYTES)), reader.good)
    reader.uint8()  # attributes, which are unused
    since_base = reader.varint(_VARLONG) if with_times else reader.uvarint(_VARLONG)
    delta = reader.varint(LENGTH_BYTES)
    key_start, key_end = _span(reader)
    value_start, value_end = _span(reader)
    if not reader.good.all():
        raise DecodeError("bad_batch", "a record that isn't as long as its parts")
    records = FramedRecords(data, key_start, key_end, value_start, value_end)
    base_offset = headers["base_offset"].astype(np.int64)
    offset = np.repeat(base_offset, count) + delta
    time = _times(headers, count, since_base) if with_times else None
    logged = LoggedRecords(records, offset, np.repeat(batches, count), time)
    if (base_offset >= position).all():
        return logged
    return logged.select(offset >= np.repeat(position, count))


def _times(headers: NDArray[np.void], count: Ints, since_base: Ints) -> Ints:
    """Return each record's timestamp (ms): the producer's, or that of the batch by the broker."""
    by_broker = np.repeat(headers["attributes"] & _LOG_APPEND_TIME != 0, count)
    written = np.repeat(headers["max_timestamp"].astype(np.int64), count)
    made = np.repeat(headers["base_timestamp"].astype(np.int64), count) + since_base
    return np.where(by_broker, written, made)


def _transaction_ends(
    data: bytes, start: Ints, headers: NDArray[np.void], controls: Ints, position: Ints
) -> Ints:
    """Return each batch's transaction marker: the type in a control record's key, or _NO_END."""
    ends = np.full(len(start), _NO_END, np.int64)
    found = _find_records(data, start, headers, controls, position)
    reader = found.records.key_reader()
    reader.int16()  # the version; every version has the type next
    kind = reader.int16()
    ends[found.batch] = np.where(reader.good & ((kind == ABORT) | (kind == COMMIT)), kind, _NO_END)
    return ends


def _apply_transactions(
    logged: LoggedRecords,
    headers: NDArray[np.void],
    ends: Ints,
    sections: list[Section],
    batches: list[slice],
) -> FramedRecords:
    """Return the records that count by now, with the pending commits that were released."""
    transactions = _transactions(headers, ends)
    released: list[PendingCommit] = []
    kept: list[tuple[int, Ints]] = []
    bounds = np.searchsorted(logged.batch, [of_section.start for of_section in batches]).tolist()
    for section, of_section, begin, end in zip(
        sections, batches, bounds, [*bounds[1:], len(logged.batch)], strict=True
    ):
        own = logged.select(slice(begin, end))
        applied = section.pending.apply(
            own._replace(batch=own.batch - of_section.start),
            Transactions(
                transactions.producer[of_section],
                transactions.is_transactional[of_section],
                transactions.ends[of_section],
            ),
        )
        kept.append((len(applied.released), begin + np.flatnonzero(applied.rows)))
        released += applied.released
    rows = np.concatenate([of_section for _, of_section in kept])
    if not released:
        return replace(logged.records.select(rows), offset=logged.offset[rows])
    data, pending = framed(released, logged.records.data)
    before = np.repeat(np.cumsum([0, *(len(own) for _, own in kept[:-1])]), [n for n, _ in kept])
    key_start, key_end, value_start, value_end = (
        np.insert(column[rows], before, added)
        for column, added in zip(logged.records.columns(), pending.columns(), strict=True)
    )
    offset = np.insert(logged.offset[rows], before, [one.offset for one in released])
    return FramedRecords(data, key_start, key_end, value_start, value_end, offset)


def _transactions(headers: NDArray[np.void], ends: Ints) -> Transactions:
    return Transactions(
        headers["producer_id"].astype(np.int64),
        headers["attributes"] & _TRANSACTIONAL != 0,
        ends,
    )


def _span(reader: ColumnReader) -> tuple[Ints, Ints]:
    """Read the bounds of bytes that may be null."""
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
