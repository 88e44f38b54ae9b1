"""caughtup-catch-up-rates: restore rates of copies and growth of logs, measured on Spark."""

from __future__ import annotations

from caughtup.models.ids import CopyKey, TopicPartition
from caughtup.models.records.decoding import RecordFormat, require_agreement
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Count,
    Group,
    OffsetsPerSecond,
    Part,
    Partition,
    Process,
    RatesTriggerSeconds,
    Record,
    Spread,
    Task,
    TimeMs,
    Topic,
    WindowSeconds,
)
from caughtup.models.records.keys import decode_copy_or_partition


class RateWindowRecord(Part):
    """Rates over one window; null: too few samples.

    seconds: how long the window is.
    position_per_second: how fast the copy restores.
    spread: the error that it has at most in 95 of 100 cases.
    samples: the number of samples.
    end_offset_per_second: how fast the end grows that the copy has to reach, or the end of the
        changelog partition.
    end_spread: the error that it has at most in 95 of 100 cases.
    end_samples: the number of samples.
    """

    seconds: WindowSeconds
    position_per_second: OffsetsPerSecond | Absent | None = ABSENT
    spread: Spread | Absent | None = ABSENT
    samples: Count | Absent = ABSENT
    end_offset_per_second: OffsetsPerSecond | Absent | None = ABSENT
    end_spread: Spread | Absent | None = ABSENT
    end_samples: Count | Absent = ABSENT


class RatesRecord(Record, omit_defaults=True):
    """Rates of a copy, or of a changelog partition's end; a tombstone: there are none any more.

    as_of_ms: when the windows end.
    trigger_seconds: the time between two batches.
    windows: the rates, by window.
    group: the application's group, of a copy.
    process: the process's id, of a copy.
    task: the task's id, of a copy.
    topic: the changelog topic, of a partition.
    partition: the changelog partition's number.
    """

    as_of_ms: TimeMs
    trigger_seconds: RatesTriggerSeconds
    windows: list[RateWindowRecord]
    group: Group | Absent = ABSENT
    process: Process | Absent = ABSENT
    task: Task | Absent = ABSENT
    topic: Topic | Absent = ABSENT
    partition: Partition | Absent = ABSENT


FORMAT = RecordFormat(RatesRecord, schemas=(1,), most_bytes=16 << 10)


def read_rates(
    key: bytes | None, value: bytes | None
) -> tuple[tuple[str, CopyKey] | TopicPartition, RatesRecord | None]:
    """Return the copy or changelog partition of a record, and its rates, None for a tombstone.

    Raises RefusedError.
    """
    subject = decode_copy_or_partition(key)
    if value is None:
        return subject, None
    record = FORMAT.decode(value)
    if isinstance(subject, TopicPartition):
        in_key: tuple[object, ...] = tuple(subject)
        in_value: tuple[object, ...] = (record.topic, record.partition)
    else:
        group, copy = subject
        in_key = (group, copy.process, str(copy.task))
        in_value = (record.group, record.process, record.task)
    for expected, field in zip(in_key, in_value, strict=True):
        if field is not ABSENT:
            require_agreement(expected, field)
    return subject, record
