"""An open transaction: the line of ``caughtup transactions``, the row of the page, the record."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.records.decoding import RecordFormat, require_agreement
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
    Record,
    TimeMs,
    Topic,
    or_none,
)
from caughtup.models.records.keys import decode_producer, encode_producer


class HeldPartition(Part, array_like=True):
    """A partition with records of an open transaction.

    topic: its topic.
    partition: its number.
    first_offset: the offset of the transaction's first record.
    """

    topic: Topic
    partition: Partition
    first_offset: Offset

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


class OpenTransaction(Part, kw_only=True):
    """An open transaction that holds back the last stable offset of a partition.

    transactional_id: its producer's ``transactional.id``; absent if no coordinator told it.
    producer_id: Kafka's id of the producer.
    producer_epoch: that producer's epoch.
    state: Kafka's state, such as ``Ongoing``; ``unknown`` if no coordinator told it.
    hanging: whether no coordinator will ever end it (KIP-664).
    started_at_ms: when it began.
    timeout_ms: how long it may stay open before its coordinator aborts it.
    last_write_ms: the time of its last record on these partitions.
    partitions: the partitions whose last stable offset it holds back.
    blocked_groups: the groups that wait for its end, 100 at most.
    records_behind: the number of offsets from there to the log ends.
    advice: what ends it, and what that loses.
    not_known: why something is absent.
    verdict: ``hanging``, or else the state.
    ends_at_ms: when its coordinator aborts it.
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


class TransactionRecord(Record):
    """An open transaction as observed; a tombstone: it no longer holds anything back.

    as_of_ms: when it was observed, by the service's clock.
    transaction: the transaction, without advice.
    """

    as_of_ms: TimeMs
    transaction: OpenTransaction

    @property
    def producer(self) -> tuple[int, int]:
        """The id and the epoch of the producer, which no other transaction has."""
        return self.transaction.producer_id, self.transaction.producer_epoch

    @property
    def key(self) -> bytes:
        """The key that it is written under."""
        return encode_producer(*self.producer)


FORMAT = RecordFormat(TransactionRecord, schemas=(1,), most_bytes=4 << 20)


def read_transaction(
    key: bytes | None, value: bytes | None
) -> tuple[tuple[int, int], TransactionRecord | None]:
    """Return a record's producer (id and epoch) and value, None for a tombstone.

    Raises RefusedError.
    """
    producer = decode_producer(key)
    if value is None:
        return producer, None
    record = FORMAT.decode(value)
    require_agreement(producer, record.producer)
    return producer, record
