"""caughtup-reassignments: what a round of looks saw of each partition in movement."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking.observation import PartitionLook
from caughtup.models.records.decoding import RecordFormat, require_agreement
from caughtup.models.records.fields import (
    Broker,
    Brokers,
    Epoch,
    Offset,
    Partition,
    Record,
    TimeMs,
    Topic,
    no_entries,
)
from caughtup.models.records.keys import decode_partition, encode_partition


class ReassignmentRecord(Record, omit_defaults=True):
    """A look at a partition: broker ids, offsets, bytes and ms, as a PartitionLook has them.

    ``since_ms`` and ``original`` are what the service knows from before this look, so that it
    still does after a restart. ``unlisted`` marks a partition that is no longer listed, though
    metadata doesn't show yet how that ended. ``ended`` marks the last look at it; ``replicas`` is
    then its shape now, empty if it is gone. A tombstone follows. Schema 1 had neither sizes nor
    anything of the leader's epoch or of brokers that didn't tell.
    """

    topic: Topic
    partition: Partition
    as_of_ms: TimeMs
    replicas: Brokers = ()
    adding: Brokers = ()
    removing: Brokers = ()
    isr: Brokers = ()
    leader: Broker | None = None
    log_ends: dict[Broker, Offset] = no_entries()
    ended: bool = False
    leader_epoch: Epoch | None = None
    offline: Brokers = ()
    sizes: dict[Broker, Offset] = no_entries()
    not_hosted: Brokers = ()
    unanswered: Brokers = ()
    since_ms: TimeMs | None = None
    original: Brokers | None = None
    unlisted: bool = False

    @property
    def key(self) -> bytes:
        """The key that it is written under."""
        return encode_partition(self.topic_partition)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that it is about."""
        return TopicPartition(self.topic, self.partition)

    @classmethod
    def from_look(
        cls,
        look: PartitionLook,
        since_ms: int | None = None,
        original: tuple[int, ...] | None = None,
    ) -> ReassignmentRecord:
        """Write a look down."""
        return cls(
            FORMAT.schema,
            *look.partition,
            look.as_of_ms,
            look.replicas,
            look.adding,
            look.removing,
            look.isr,
            look.leader,
            dict(look.log_ends),
            leader_epoch=look.leader_epoch,
            offline=look.offline,
            sizes=dict(look.sizes),
            not_hosted=look.not_hosted,
            unanswered=look.unanswered,
            since_ms=since_ms,
            original=original,
        )

    def to_look(self) -> PartitionLook:
        """Return the look that was written down."""
        return PartitionLook(
            partition=self.topic_partition,
            replicas=self.replicas,
            adding=self.adding,
            removing=self.removing,
            isr=self.isr,
            leader=self.leader,
            as_of_ms=self.as_of_ms,
            leader_epoch=self.leader_epoch,
            offline=self.offline,
            log_ends=self.log_ends,
            sizes=self.sizes,
            not_hosted=self.not_hosted,
            unanswered=self.unanswered,
        )


#: A partition may have as many replicas as there are brokers, each with an end and a size.
FORMAT = RecordFormat(ReassignmentRecord, schemas=(1, 2), most_bytes=256 << 10)


def read_partition_look(
    key: bytes | None, value: bytes | None
) -> tuple[TopicPartition, ReassignmentRecord | None]:
    """Decode a record: which partition, and the look at it; None: its movement is over.

    Raises RefusedError.
    """
    partition = decode_partition(key)
    if value is None:
        return partition, None
    record = FORMAT.decode(value)
    require_agreement(partition, record.topic_partition)
    return partition, record
