"""caughtup-lag: the lag table, one record for each line, and a tombstone for a removed one.

Unknown fields are absent. The service itself only reads the keys back, to write tombstones.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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

#: The age of a line: while nothing else of it changes, it grows as time passes.
_AGE = re.compile(rb'"lag_seconds":[0-9.e+-]+,')
_FASTEST = 1

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


def mark(value: bytes) -> int:
    """Return a number that changes with a line's value, unless only its age does."""
    return hash(_AGE.sub(b"", value, 1))


class WrittenLines:
    """The lines that each group has on the topic: their keys, with the ``mark`` of their values.

    A group's are packed while nothing is written of it: 100 lines then take 1.3 kB instead of 14.
    """

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._unpacked: dict[str, dict[bytes, int]] = {}

    def groups(self) -> set[str]:
        """Return the groups that have lines."""
        return self._packed.keys() | self._unpacked.keys()

    @contextmanager
    def of(self, group: str) -> Iterator[dict[bytes, int]]:
        """Yield a group's marks by key, to be changed until the context's end.

        Within another context of the same group it is the same dictionary.
        """
        if group in self._unpacked:
            yield self._unpacked[group]
            return
        packed = self._packed.pop(group, None)
        marks = self._unpacked[group] = {} if packed is None else _unpacked(packed)
        try:
            yield marks
        finally:
            if self._unpacked.pop(group, None) is marks and marks:
                self._packed[group] = _packed(marks)

    def add_groups(self, read: Mapping[str, Mapping[bytes, int]]) -> None:
        """Add the lines of those groups of which none are known."""
        known = self.groups()
        for group, marks in read.items():
            if marks and group not in known:
                self._packed[group] = _packed(marks)

    def drop(self, group: str) -> None:
        """Forget a group's lines."""
        self._packed.pop(group, None)
        self._unpacked.pop(group, None)

    def clear(self) -> None:
        """Forget all lines."""
        self._packed.clear()
        self._unpacked.clear()


def _packed(marks: Mapping[bytes, int]) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(marks), _FASTEST)


def _unpacked(packed: bytes) -> dict[bytes, int]:
    return msgspec.msgpack.decode(zlib.decompress(packed), type=dict[bytes, int])
