"""caughtup-reassignments: what a round of observations saw of each partition."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking.observation import PartitionObservation
from caughtup.models.reassignments.watch import AssessedReassignment
from caughtup.models.records.decoding import RecordFormat, require_agreement
from caughtup.models.records.fields import (
    MOST_SECONDS,
    Broker,
    Brokers,
    Bytes,
    BytesTrend,
    Epoch,
    Name,
    Offset,
    Partition,
    Record,
    Seconds,
    TimeMs,
    Topic,
    no_entries,
)
from caughtup.models.records.keys import decode_partition, encode_partition


class ReassignmentRecord(Record, omit_defaults=True):
    """A partition that is being reassigned, as a probe saw it; a tombstone: that is over.

    topic: the partition's topic.
    partition: its number.
    as_of_ms: when the probe asked, by the service's clock.
    replicas: brokers, in Kafka's order; after the end those that there are now, empty if the
        partition is gone.
    adding: the brokers of replicas that are added.
    removing: the brokers of replicas that are removed.
    isr: the brokers of in-sync replicas.
    leader: the leader's broker; null: there is none.
    log_ends: by broker, its replica's own log end offset.
    ended: whether this is the last observation; a tombstone follows.
    leader_epoch: -1 where the broker doesn't know it; since schema 2.
    offline: the brokers of replicas that are offline; since schema 2.
    sizes: by broker, how large its replica's log is; since schema 2.
    not_hosted: brokers that report that they have no such replica; since schema 2.
    unanswered: brokers whose replica is unknown; since schema 2.
    since_ms: when the reassignment was first seen; since schema 2.
    original: the replicas at that time; since schema 2.
    unlisted: whether the controller no longer lists it, though metadata doesn't show yet how it
        ended; since schema 2.
    verdict: the verdict when it was last assessed, mostly at the observation before; absent before
        the first assessment and at the end.
    cause: why, in a word, where the verdict has a cause.
    rate_bytes_per_second: what the added replicas copy, all together.
    eta_seconds: until the last of them is caught up.
    never: whether it never will be at the present rates; then ``eta_seconds`` is absent.
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
    sizes: dict[Broker, Bytes] = no_entries()
    not_hosted: Brokers = ()
    unanswered: Brokers = ()
    since_ms: TimeMs | None = None
    original: Brokers | None = None
    unlisted: bool = False
    verdict: Name | None = None
    cause: Name | None = None
    rate_bytes_per_second: BytesTrend | None = None
    eta_seconds: Seconds | None = None
    never: bool = False

    @property
    def key(self) -> bytes:
        """The key that it is written under."""
        return encode_partition(self.topic_partition)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that it is about."""
        return TopicPartition(self.topic, self.partition)

    @classmethod
    def from_observation(
        cls,
        observation: PartitionObservation,
        since_ms: int | None = None,
        original: tuple[int, ...] | None = None,
    ) -> ReassignmentRecord:
        """Return the record of an observation."""
        return cls(
            FORMAT.schema,
            *observation.partition,
            observation.as_of_ms,
            observation.replicas,
            observation.adding,
            observation.removing,
            observation.isr,
            observation.leader,
            dict(observation.log_ends),
            leader_epoch=observation.leader_epoch,
            offline=observation.offline,
            sizes=dict(observation.sizes),
            not_hosted=observation.not_hosted,
            unanswered=observation.unanswered,
            since_ms=since_ms,
            original=original,
        )

    def judge(self, assessed: AssessedReassignment | None) -> None:
        """Add what was worked out of the reassignment, as far as that is known."""
        if assessed is None:
            return
        self.verdict, self.cause = assessed.verdict.verdict, assessed.verdict.cause
        rate, eta = assessed.figures.rate_bytes, assessed.figures.eta
        if rate is not None and abs(rate) <= MOST_SECONDS:
            self.rate_bytes_per_second = float(rate)
        if eta is not None and eta.seconds >= 0:
            self.never = eta.seconds > MOST_SECONDS
            self.eta_seconds = None if self.never else eta.seconds

    def to_observation(self) -> PartitionObservation:
        """Return the observation that was written."""
        return PartitionObservation(
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


def read_reassignment(
    key: bytes | None, value: bytes | None
) -> tuple[TopicPartition, ReassignmentRecord | None]:
    """Decode a record: which partition, and what was observed; None: its reassignment is over.

    Raises RefusedError.
    """
    partition = decode_partition(key)
    if value is None:
        return partition, None
    record = FORMAT.decode(value)
    require_agreement(partition, record.topic_partition)
    return partition, record
