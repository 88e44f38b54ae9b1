"""caughtup-pipeline-progress: the progress that the streams on Spark report."""

from __future__ import annotations

from typing import Literal

from caughtup.models.records.decoding import RecordFormat
from caughtup.models.records.fields import (
    Count,
    Offsets,
    Record,
    RecordsPerSecond,
    TimeMs,
    TriggerSeconds,
)
from caughtup.models.records.keys import decode_group

State = Literal["running", "stopped", "failed"]
STATES: tuple[State, ...] = ("running", "stopped", "failed")


class ProgressRecord(Record, omit_defaults=True):
    """The progress of a stream; absent: not known. A tombstone: readers forget the stream.

    state: whether the stream runs, was stopped, or failed.
    trigger_seconds: the time from one batch to the next; absent if the stream processes what is
        there and ends.
    batch: the number of the last batch.
    batch_seconds: how long that took.
    rows: the records that it read.
    rows_per_second: the same per second.
    offsets_behind: over all partitions, from the batch's end to the log's.
    quarantined: records that could not be decoded, since the stream's start.
    state_rows: the rows that the stream keeps from batch to batch.
    watermark_ms: Spark's watermark, before which it expects no more records.
    why: why it failed, in a line.
    """

    state: State
    trigger_seconds: TriggerSeconds | None = None
    batch: Count | None = None
    batch_seconds: TriggerSeconds | None = None
    rows: Count | None = None
    rows_per_second: RecordsPerSecond | None = None
    offsets_behind: Offsets | None = None
    quarantined: Count | None = None
    state_rows: Count | None = None
    watermark_ms: TimeMs | None = None
    why: str | None = None


FORMAT = RecordFormat(ProgressRecord, schemas=(1,), most_bytes=64 << 10)


def read_progress(key: bytes | None, value: bytes | None) -> tuple[str, ProgressRecord | None]:
    """Return a stream's name and its progress, None for a tombstone. Raises RefusedError."""
    stream = decode_group(key)
    return stream, None if value is None else FORMAT.decode(value)
