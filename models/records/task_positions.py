"""caughtup-task-positions: the positions of copies that applications report between rebalances."""

from __future__ import annotations

from typing import Literal

from caughtup.models.ids import CopyKey
from caughtup.models.records.decoding import RecordFormat, require_agreement
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Group,
    Name,
    Offsets,
    Process,
    Record,
    Task,
    TimeMs,
    Topic,
    no_entries,
)
from caughtup.models.records.keys import decode_copy

Role = Literal["active", "restoring", "standby"]


class PositionRecord(Record, omit_defaults=True):
    """A process's report of one of its copies; a tombstone: the copy is no longer there.

    group: the application's group, as in the key.
    process: the process's id, as in the key.
    client_id: the ``client.id`` of the process or its thread.
    task: the task's id, as in the key.
    role: the role of the copy on the process; null: not reported.
    lag: over all of the task's changelogs; null or absent: not known of one of them.
    lags: by changelog topic; null: not known yet.
    leads: by changelog topic, how far the copy is from the log's start; null: not known yet.
    at_ms: when that held, by the application's clock. The record's timestamp, which is the
        broker's, takes precedence.
    """

    group: Group | Absent = ABSENT
    process: Process | Absent = ABSENT
    client_id: Name | Absent = ABSENT
    task: Task | Absent = ABSENT
    role: Role | None = None
    lag: Offsets | None = None
    lags: dict[Topic, Offsets | None] = no_entries()
    leads: dict[Topic, Offsets | None] = no_entries()
    at_ms: TimeMs | Absent = ABSENT


#: Two numbers for each of a task's changelogs.
FORMAT = RecordFormat(PositionRecord, schemas=(1,), most_bytes=256 << 10)


def read_position(
    key: bytes | None, value: bytes | None
) -> tuple[str, CopyKey, PositionRecord | None]:
    """Return the group, the copy and the report of a record, None for a tombstone.

    Raises RefusedError.
    """
    group, copy = decode_copy(key)
    if value is None:
        return group, copy, None
    record = FORMAT.decode(value)
    in_key = (group, copy.process, str(copy.task))
    in_value = (record.group, record.process, record.task)
    for expected, field in zip(in_key, in_value, strict=True):
        if field is not ABSENT:
            require_agreement(expected, field)
    return group, copy, record
