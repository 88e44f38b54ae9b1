"""caughtup-reassignments: what holds for all partitions of a round, under a key of its own."""

from __future__ import annotations

from caughtup.models.reassignments.tracking.observation import (
    BrokerObservation,
    ClusterObservation,
    TopicThrottle,
)
from caughtup.models.records.decoding import RecordFormat
from caughtup.models.records.fields import (
    Broker,
    Bytes,
    BytesPerSecond,
    Epoch,
    Int,
    Part,
    Record,
    TimeMs,
    Topic,
    no_entries,
)

#: No partition has this key.
CLUSTER_KEY = b"_cluster"


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

    @classmethod
    def from_observation(cls, observation: ClusterObservation) -> ClusterRecord:
        """Return the record of an observation."""
        brokers = None
        if observation.brokers is not None:
            brokers = {
                broker: BrokerRecord(
                    seen.fenced,
                    seen.leader_rate,
                    seen.follower_rate,
                    seen.usable_bytes,
                    seen.total_bytes,
                    seen.offline_directories,
                )
                for broker, seen in sorted(observation.brokers.items())
            }
        return cls(
            FORMAT.schema,
            observation.as_of_ms,
            brokers,
            observation.quorum_leader,
            observation.quorum_epoch,
            observation.software,
            observation.zookeeper,
            {
                topic: ThrottleRecord(throttle.leader, throttle.follower)
                for topic, throttle in sorted(observation.throttles.items())
            },
            observation.missing,
        )

    def to_observation(self) -> ClusterObservation:
        """Return the observation that was written."""
        brokers = None
        if self.brokers is not None:
            brokers = {
                broker: BrokerObservation(
                    seen.fenced,
                    seen.leader_rate,
                    seen.follower_rate,
                    seen.usable_bytes,
                    seen.total_bytes,
                    seen.offline_directories,
                )
                for broker, seen in self.brokers.items()
            }
        return ClusterObservation(
            as_of_ms=self.as_of_ms,
            brokers=brokers,
            quorum_leader=self.quorum_leader,
            quorum_epoch=self.quorum_epoch,
            software=self.software,
            zookeeper=self.zookeeper,
            throttles={
                topic: TopicThrottle(throttle.leader, throttle.follower)
                for topic, throttle in self.throttles.items()
            },
            missing=self.missing,
        )


#: Every broker, and every throttled replica of reassigned topics.
FORMAT = RecordFormat(ClusterRecord, schemas=(1, 2), most_bytes=16 << 20)


def read_cluster_observation(value: bytes) -> ClusterRecord:
    """Decode a value. Raises RefusedError."""
    return FORMAT.decode(value)
