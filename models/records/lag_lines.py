"""caughtup-lag: the lag table, one record for each line, and a tombstone for a removed one.

Unknown fields are absent. The service itself only reads the keys back, to write tombstones.
"""

from __future__ import annotations

from typing import Literal

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    AnyGroup,
    Generation,
    Group,
    Name,
    Offset,
    Offsets,
    Part,
    Partition,
    Process,
    Seconds,
    SignedSeconds,
    Task,
    TimeMs,
    Topic,
)
from caughtup.models.records.keys import encode_line

GroupType = Literal["classic", "consumer", "streams", "share", "connect", "spark"]


class PartitionLine(Part, tag_field="kind", tag="partition"):
    """A group's lag on a partition; a tombstone: the group has no commit or member there any more.

    kind: distinguishes it from a line of a copy.
    group: the group.
    topic: the partition's topic.
    partition: its number.
    has_commit: whether the group ever committed an offset of it.
    group_type: what kind of group it is, ``spark`` for a query of Structured Streaming; absent where
        it isn't known.
    committed: the offset that the group committed last; of a share group, which commits none, the
        log end less its lag.
    end_offset: the log's end.
    last_stable_offset: the offset up to which a read_committed consumer reads.
    start_offset: the offset of the first record that is still in the log.
    share_start_offset: of a share group, the share-partition start offset: each record before it is
        done (KIP-932).
    lag: what a read_committed consumer has yet to read.
    lag_committed_view: the same up to the log's end, open transactions included.
    lag_seconds: the age of the oldest unread record at the record's time; it has grown since, as no
        record is written of that alone.
    lag_seconds_method: how that was computed: ``caught_up``, ``interpolated`` between two
        observations of the log, or ``at_least``, if the oldest one already had the record.
    verdict: the verdict on the group's partition: ``ok``, ``unknown``, ``slow``, ``rewound``,
        ``blocked``, ``diverging``, ``stalled`` or ``stopped``.
    why: the verdict's reason, a sentence.
    member: the id of the member that reads it.
    client_id: that member's ``client.id``.
    """

    group: AnyGroup
    topic: Topic
    partition: Partition
    has_commit: bool
    group_type: GroupType | Absent = ABSENT
    committed: Offset | Absent = ABSENT
    end_offset: Offset | Absent = ABSENT
    last_stable_offset: Offset | Absent = ABSENT
    start_offset: Offset | Absent = ABSENT
    share_start_offset: Offset | Absent = ABSENT
    lag: Offsets | Absent = ABSENT
    lag_committed_view: Offsets | Absent = ABSENT
    lag_seconds: Seconds | Absent = ABSENT
    lag_seconds_method: Name | Absent = ABSENT
    verdict: Name | Absent = ABSENT
    why: str | Absent = ABSENT
    member: Name | Absent = ABSENT
    client_id: Name | Absent = ABSENT

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that it is about."""
        return TopicPartition(self.topic, self.partition)

    @property
    def key(self) -> bytes:
        """The key that it is written under."""
        return encode_line(self.group, self.topic, self.partition)


class CopyLine(Part, tag_field="kind", tag="task"):
    """A copy of a task; a tombstone: the copy is no longer there.

    kind: distinguishes it from a line of a partition.
    group: the application's group.
    generation: the group's generation.
    client_id: the process's ``client.id``.
    task: the task, such as ``0_3``.
    process: the process's id.
    role: ``active``, ``restoring``, ``standby``, ``warmup``, or ``none``: state on disk that is
        not assigned.
    provenance: where the lag is from: ``running`` (an active has none), ``measured`` by the
        application, ``reported`` at the rebalance, ``estimated`` from above, ``unknown``.
    lag: from the end of its changelogs.
    as_of_ms: when that was so.
    eta_seconds: until it is caught up.
    rates: who measured its rate: ``spark``, or the service's ``own``.
    verdict: the verdict on the copy.
    why: the verdict's reason, a sentence.
    offset_sum: the sum of its positions that its member reported.
    end_offset_sum: the sum of its changelogs' ends then.
    changelogs: by changelog topic, the lag.
    """

    group: Group
    generation: Generation
    client_id: Name
    task: Task
    process: Process
    role: Name
    provenance: Name
    lag: Offsets | Absent = ABSENT
    as_of_ms: TimeMs | Absent = ABSENT
    eta_seconds: SignedSeconds | Absent = ABSENT
    rates: Name | Absent = ABSENT
    verdict: Name | Absent = ABSENT
    why: str | Absent = ABSENT
    offset_sum: Offsets | Absent = ABSENT
    end_offset_sum: Offsets | Absent = ABSENT
    changelogs: dict[Topic, Offsets] | Absent = ABSENT

    @property
    def key(self) -> bytes:
        """The key that it is written under."""
        return encode_line(self.group, self.process, self.task)


Line = PartitionLine | CopyLine


def encode(line: Line) -> bytes:
    """Return a line's value."""
    return msgspec.json.encode(line)
