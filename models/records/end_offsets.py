"""caughtup-end-offsets: each partition's end offsets, and when they were listed."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.decoding import RecordFormat, require_agreement
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Name,
    Offset,
    Partition,
    Record,
    TimeMs,
    Topic,
    TopicId,
    or_absent,
)
from caughtup.models.records.keys import decode_partition, encode_partition


class EndOffsetsRecord(Record):
    """Where a partition's log ended when the probe listed it; a tombstone: the partition is gone.

    topic: the partition's topic.
    partition: its number.
    start_offset: the offset of the first record that is still in the log.
    last_stable_offset: the offset up to which a read_committed consumer reads.
    end_offset: the offset that the next record gets.
    as_of_ms: when the probe listed them, by the service's clock.
    readable_end_offset: the offset after the last record that a read_committed consumer gets,
        before transaction markers and aborted records; null if the probe did not look it up.
    topic_id: Kafka's id of the topic, 32 hexadecimal digits; null if no reader needs it.
    listed_by: the instance whose probe goes on listing the topic, and the number of its list, if
        several share the groups.
    """

    topic: Topic
    partition: Partition
    start_offset: Offset
    last_stable_offset: Offset
    end_offset: Offset
    as_of_ms: TimeMs
    readable_end_offset: Offset | None = None
    topic_id: TopicId | None = None
    listed_by: Name | Absent = ABSENT

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that it is about."""
        return TopicPartition(self.topic, self.partition)

    @property
    def key(self) -> bytes:
        """The key that it is written under."""
        return encode_partition(self.topic_partition)

    @classmethod
    def from_ends(
        cls,
        partition: TopicPartition,
        ends: EndOffsets,
        topic_id: bytes | None = None,
        listed_by: str | None = None,
    ) -> EndOffsetsRecord:
        """Return the record of a partition's end offsets."""
        return cls(
            FORMAT.schema,
            *partition,
            ends.start_offset,
            ends.last_stable_offset,
            ends.end_offset,
            ends.as_of_ms,
            ends.readable_end_offset,
            topic_id.hex() if topic_id else None,
            or_absent(listed_by),
        )

    def to_ends(self) -> EndOffsets:
        """Return the end offsets of this record."""
        return EndOffsets(
            self.start_offset,
            self.last_stable_offset,
            self.end_offset,
            self.as_of_ms,
            self.readable_end_offset,
        )


FORMAT = RecordFormat(EndOffsetsRecord, schemas=(1,), most_bytes=16 << 10)


def read_end_offsets(
    key: bytes | None, value: bytes | None
) -> tuple[TopicPartition, EndOffsetsRecord | None]:
    """Return the partition and the value of a record, None for a tombstone. Raises RefusedError."""
    partition = decode_partition(key)
    if value is None:
        return partition, None
    record = FORMAT.decode(value)
    require_agreement(partition, record.topic_partition)
    return partition, record
