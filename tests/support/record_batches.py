"""Record batches in the brokers' format, from aiokafka's independent encoder."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import Section

_BASE_OFFSET = struct.Struct(">q")
_ATTRIBUTES = struct.Struct(">21xh")
_CONTROL = 0x20
ABORT, COMMIT = (struct.pack(">hh", 0, kind) for kind in (0, 1))


@dataclass
class LoggedRecord:
    """A record with its offset; nothing reads its ``headers``."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 1_790_000_000_000
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)


def record_batch(
    records: Sequence[LoggedRecord],
    *,
    producer_id: int = -1,
    transactional: bool = False,
    control: bool = False,
    compression: int = 0,
    first_offset: int | None = None,
) -> bytes:
    """Write a batch; ``first_offset`` differs if the first records were compacted away."""
    base_offset = records[0].offset if first_offset is None else first_offset
    builder = DefaultRecordBatchBuilder(
        2, compression, int(transactional), producer_id, 0 if producer_id >= 0 else -1, 0, 1 << 30
    )
    for one in records:
        offset = one.offset - base_offset
        appended = builder.append(offset, one.timestamp_ms, one.key, one.value, one.headers)
        assert appended is not None
    written = bytearray(builder.build())
    _BASE_OFFSET.pack_into(written, 0, base_offset)
    if control:
        (attributes,) = _ATTRIBUTES.unpack_from(written)
        struct.pack_into(">h", written, 21, attributes | _CONTROL)
    return bytes(written)


def marker(offset: int, producer_id: int, kind: bytes) -> bytes:
    """Write a transaction's marker: ABORT or COMMIT."""
    ended = LoggedRecord(offset, kind, bytes(6))
    return record_batch([ended], producer_id=producer_id, transactional=True, control=True)


def answer_of(
    sections: Sequence[Sequence[bytes]], *, positions: Sequence[int] | None = None
) -> tuple[bytes, list[Section]]:
    """Concatenate batches of several partitions, with other bytes between them."""
    data = bytearray(b"head")
    found = []
    for number, batches in enumerate(sections):
        start = len(data)
        data += b"".join(batches)
        position = 0 if positions is None else positions[number]
        found.append(Section(start, len(data), position, PendingCommits()))
        data += b"\xff" * 5
    return bytes(data), found
