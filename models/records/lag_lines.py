"""caughtup-lag: the lag table, a record for each line; a tombstone for one that is gone.

What isn't known is absent. Nobody but people and their tools reads the values; the service takes
back which keys there are, so that it can withdraw them.
"""

from __future__ import annotations

from typing import Literal

from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Amount,
    AnyGroup,
    Generation,
    Group,
    Name,
    Offset,
    Part,
    Partition,
    Process,
    Rate,
    Task,
    TimeMs,
    Topic,
)


class PartitionLine(Part, tag_field="kind", tag="partition"):
    """A group's lag on a partition, in offsets; the key is ``[group, topic, partition]``."""

    group: AnyGroup
    topic: Topic
    partition: Partition
    has_commit: bool
    group_type: Literal["classic", "consumer", "streams", "share", "connect"] | Absent = ABSENT
    committed: Offset | Absent = ABSENT
    end_offset: Offset | Absent = ABSENT
    last_stable_offset: Offset | Absent = ABSENT
    start_offset: Offset | Absent = ABSENT
    lag: Offset | Absent = ABSENT
    lag_committed_view: Offset | Absent = ABSENT
    lag_seconds: Amount | Absent = ABSENT
    lag_seconds_method: Name | Absent = ABSENT
    verdict: Name | Absent = ABSENT
    why: str | Absent = ABSENT
    member: Name | Absent = ABSENT
    client_id: Name | Absent = ABSENT


class CopyLine(Part, tag_field="kind", tag="task"):
    """A copy of a task and its lag, in offsets; the key is ``[group, process, task]``."""

    group: Group
    generation: Generation
    client_id: Name
    task: Task
    process: Process
    role: Name
    provenance: Name
    lag: Offset | Absent = ABSENT
    as_of_ms: TimeMs | Absent = ABSENT
    eta_seconds: Rate | Absent = ABSENT
    rates: Name | Absent = ABSENT
    verdict: Name | Absent = ABSENT
    why: str | Absent = ABSENT
    offset_sum: Offset | Absent = ABSENT
    end_offset_sum: Offset | Absent = ABSENT
    changelogs: dict[Topic, Offset] | Absent = ABSENT


Line = PartitionLine | CopyLine
