"""caughtup-reassignments: observations of each reassigned partition, and of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from caughtup.models.ids import TopicPartition
from caughtup.models.records.decoding import RecordFormat, require_agreement
from caughtup.models.records.fields import (
    Broker,
    Brokers,
    Bytes,
    BytesPerSecond,
    BytesTrend,
    Epoch,
    Int,
    Name,
    Offset,
    Part,
    Partition,
    Record,
    Seconds,
    TimeMs,
    Topic,
    no_entries,
)
from caughtup.models.records.keys import decode_partition, encode_partition

#: The key of the cluster's record, which no partition has.
CLUSTER_KEY = b"_cluster"


class ReassignmentRecord(Record, omit_defaults=True, gc=False):
    """A partition that is being reassigned, as observed; a tombstone: the reassignment is over.

    topic: the partition's topic.
    partition: its number.
    as_of_ms: when the probe observed it, by the service's clock.
    replicas: brokers, in Kafka's order; after the end, those of the present replicas, empty if the
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
    never: whether it never catches up at the present rates; then ``eta_seconds`` is absent.
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

    @property
    def has_metadata(self) -> bool:
        """Whether a broker returned metadata of it: a leader, its epoch or an ISR."""
        return self.leader is not None or self.leader_epoch is not None or bool(self.isr)

    @property
    def leader_end(self) -> int | None:
        """The leader's log end offset, None if unknown."""
        return None if self.leader is None else self.log_ends.get(self.leader)

    def offsets_behind(self, replica: int) -> int | None:
        """Return the offsets that a replica has yet to copy from its leader, None if unknown."""
        head, end = self.leader_end, self.log_ends.get(replica)
        return None if head is None or end is None else max(0, head - end)


class BrokerRecord(Part, omit_defaults=True):
    """A registered broker; null: not known, or a throttle that isn't set.

    fenced: whether the controller has fenced it.
    leader_rate: ``leader.replication.throttled.rate``.
    follower_rate: ``follower.replication.throttled.rate``.
    usable_bytes: what is free in the fullest of its log directories.
    total_bytes: how large that directory's volume is.
    offline_directories: the log directories that it cannot read.
    """

    fenced: bool | None = None
    leader_rate: BytesPerSecond | None = None
    follower_rate: BytesPerSecond | None = None
    usable_bytes: Bytes | None = None
    total_bytes: Bytes | None = None
    offline_directories: tuple[str, ...] = ()


class ThrottleRecord(Part, omit_defaults=True):
    """A topic's throttled replicas: empty, ``*``, ``none``, or ``partition:broker,…``.

    leader: ``leader.replication.throttled.replicas``.
    follower: ``follower.replication.throttled.replicas``.
    """

    leader: str = ""
    follower: str = ""


class ClusterRecord(Record, omit_defaults=True):
    """What one round of observations found that holds for all partitions. The key is ``_cluster``.

    as_of_ms: when the round began, by the service's clock.
    brokers: the registered brokers by id; null if no broker answered.
    quorum_leader: the broker id of the controllers' leader; null: not known.
    quorum_epoch: the epoch of the controllers' quorum; null: not known.
    software: the newest Kafka release that every broker can be, such as ``[4, 1]``; null: not known.
    zookeeper: whether ZooKeeper's controller decides.
    throttles: topics with throttled replicas.
    missing: what this round lacks, in words.
    """

    as_of_ms: TimeMs
    brokers: dict[Broker, BrokerRecord] | None = None
    quorum_leader: Broker | None = None
    quorum_epoch: Epoch | None = None
    software: tuple[Int, Int] | None = None
    zookeeper: bool = False
    throttles: dict[Topic, ThrottleRecord] = no_entries()
    missing: tuple[str, ...] = ()


#: A partition may have as many replicas as there are brokers, each with an end and a size.
FORMAT = RecordFormat(ReassignmentRecord, schemas=(1, 2), most_bytes=256 << 10)
#: Every broker, and every throttled replica of reassigned topics.
CLUSTER_FORMAT = RecordFormat(ClusterRecord, schemas=(1, 2), most_bytes=16 << 20)


def read_reassignment(
    key: bytes | None, value: bytes | None
) -> tuple[TopicPartition, ReassignmentRecord | None]:
    """Return the partition and the observation of a record, None for a tombstone.

    Raises RefusedError.
    """
    partition = decode_partition(key)
    if value is None:
        return partition, None
    record = FORMAT.decode(value)
    require_agreement(partition, record.topic_partition)
    return partition, record


def offsets_remaining(observation: ReassignmentRecord) -> int | None:
    """Return the offsets that the furthest added replica has yet to copy; None if one is unknown."""
    behind = [observation.offsets_behind(replica) for replica in observation.adding]
    known = [offsets for offsets in behind if offsets is not None]
    if observation.leader_end is None or len(known) < len(behind):
        return None
    return max(known, default=0)


def lasting_since(
    observations: Sequence[ReassignmentRecord], holds: Callable[[ReassignmentRecord], bool]
) -> tuple[int, int]:
    """Return since when (ms) ``holds`` is true up to the last observation, and for how many."""
    since_ms, count = observations[-1].as_of_ms, 0
    for one in reversed(observations):
        if not holds(one):
            break
        since_ms, count = one.as_of_ms, count + 1
    return since_ms, count
