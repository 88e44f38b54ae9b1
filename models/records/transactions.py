"""An open transaction: the line of ``caughtup transactions`` and the row of the page."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    DurationMs,
    Epoch,
    Group,
    Long,
    Name,
    Offset,
    Offsets,
    Part,
    Partition,
    TimeMs,
    Topic,
    or_none,
)


class HeldPartition(Part, array_like=True):
    """A partition with records of an open transaction, and the offset of the first of them."""

    topic: Topic
    partition: Partition
    first_offset: Offset

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


class OpenTransaction(Part, kw_only=True):
    """An open transaction that holds back the last stable offset of a partition.

    ``state`` is Kafka's, such as ``Ongoing``; ``unknown`` if no coordinator told it.
    ``hanging``: no coordinator will ever end it (KIP-664). ``partitions`` are those whose last
    stable offset it holds back, ``records_behind`` the number of offsets from there to the log ends.
    ``last_write_ms`` is the time of its last record on these. ``not_known``: why something is absent.
    ``verdict`` is ``hanging``, else the state; ``ends_at_ms`` is when its coordinator aborts it.
    """

    transactional_id: str | Absent = ABSENT
    producer_id: Long
    producer_epoch: Epoch
    state: Name
    hanging: bool = False
    started_at_ms: TimeMs | Absent = ABSENT
    timeout_ms: DurationMs | Absent = ABSENT
    last_write_ms: TimeMs | Absent = ABSENT
    partitions: tuple[HeldPartition, ...]
    blocked_groups: tuple[Group, ...] = ()
    records_behind: Offsets = 0
    advice: str = ""
    not_known: str | Absent = ABSENT
    verdict: Name = "unknown"
    ends_at_ms: TimeMs | Absent = ABSENT

    @property
    def name(self) -> str:
        """The transactional id; where it isn't known, the producer's id."""
        name = or_none(self.transactional_id)
        return f"producer id {self.producer_id}" if name is None else name
