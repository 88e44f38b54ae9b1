"""caughtup-catch-up-rates: how fast copies restore and logs grow, as the job on Spark measures it."""

from __future__ import annotations

from caughtup.models.copies.catch_up_rates import RateWindow, WindowRate
from caughtup.models.ids import TopicPartition
from caughtup.models.records.decoding import RecordFormat, require_agreement
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Amount,
    Count,
    Group,
    Part,
    Partition,
    Process,
    Rate,
    RatesTriggerSeconds,
    Record,
    Task,
    TimeMs,
    Topic,
    WindowSeconds,
)
from caughtup.models.records.keys import decode_copy_or_partition
from caughtup.models.tasks.positions import CopyKey


class RateWindowRecord(Part):
    """A window of so many seconds: offsets a second, how far off they may be, null = unknown.

    ``position_per_second``, ``spread`` and ``samples`` are of a copy; the others of the end that
    it is to reach, or of a changelog partition's.
    """

    seconds: WindowSeconds
    position_per_second: Rate | Absent | None = ABSENT
    spread: Amount | Absent | None = ABSENT
    samples: Count | Absent = ABSENT
    end_offset_per_second: Rate | Absent | None = ABSENT
    end_spread: Amount | Absent | None = ABSENT
    end_samples: Count | Absent = ABSENT

    def to_window(self) -> RateWindow:
        """Return the window that was written down."""
        position = _rate(self.position_per_second, self.spread, self.samples)
        return RateWindow(
            self.seconds,
            position,
            _rate(self.end_offset_per_second, self.end_spread, self.end_samples),
        )


class RatesRecord(Record, omit_defaults=True):
    """The rates of a copy, or of a changelog partition's end; a tombstone where there are none.

    ``as_of_ms``: when the windows end. ``trigger_seconds``: how often there may be news.
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
    """Decode a record: a group's copy, or a changelog partition, and its rates if there are some.

    Raises RefusedError.
    """
    subject = decode_copy_or_partition(key)
    if value is None:
        return subject, None
    record = FORMAT.decode(value)
    if isinstance(subject, TopicPartition):
        named: tuple[object, ...] = tuple(subject)
        told: tuple[object, ...] = (record.topic, record.partition)
    else:
        group, copy = subject
        named = (group, copy.process, str(copy.task))
        told = (record.group, record.process, record.task)
    for known, given in zip(named, told, strict=True):
        if given is not ABSENT:
            require_agreement(known, given)
    return subject, record


def _rate(
    per_second: float | Absent | None, spread: float | Absent | None, samples: int | Absent
) -> WindowRate:
    return WindowRate(
        None if isinstance(per_second, Absent) else per_second,
        None if isinstance(spread, Absent) else spread,
        0 if isinstance(samples, Absent) else samples,
    )
