"""caughtup-reassignments: what holds for all partitions of a round, under a key of its own."""

from __future__ import annotations

from caughtup.models.reassignments.tracking.observation import (
    BrokerLook,
    ClusterLook,
    TopicThrottle,
)
from caughtup.models.records.decoding import RecordFormat
from caughtup.models.records.fields import (
    Broker,
    Epoch,
    Int,
    Offset,
    Part,
    Record,
    TimeMs,
    Topic,
    no_entries,
)

#: No partition has this key.
CLUSTER_KEY = b"_cluster"


class BrokerRecord(Part, omit_defaults=True):
    """A broker, as a BrokerLook has it."""

    fenced: bool | None = None
    leader_rate: Offset | None = None
    follower_rate: Offset | None = None
    usable_bytes: Offset | None = None
    total_bytes: Offset | None = None
    offline_directories: tuple[str, ...] = ()


class ThrottleRecord(Part, omit_defaults=True):
    """A topic's throttled replicas, as a TopicThrottle has them."""

    leader: str = ""
    follower: str = ""


class ClusterRecord(Record, omit_defaults=True):
    """What holds for all partitions of a round, as a ClusterLook has it."""

    as_of_ms: TimeMs
    brokers: dict[Broker, BrokerRecord] | None = None
    quorum_leader: Broker | None = None
    quorum_epoch: Epoch | None = None
    software: tuple[Int, Int] | None = None
    zookeeper: bool = False
    throttles: dict[Topic, ThrottleRecord] = no_entries()
    missing: tuple[str, ...] = ()

    @classmethod
    def from_look(cls, look: ClusterLook) -> ClusterRecord:
        """Write a look down."""
        brokers = None
        if look.brokers is not None:
            brokers = {
                broker: BrokerRecord(
                    seen.fenced,
                    seen.leader_rate,
                    seen.follower_rate,
                    seen.usable_bytes,
                    seen.total_bytes,
                    seen.offline_directories,
                )
                for broker, seen in sorted(look.brokers.items())
            }
        return cls(
            FORMAT.schema,
            look.as_of_ms,
            brokers,
            look.quorum_leader,
            look.quorum_epoch,
            look.software,
            look.zookeeper,
            {
                topic: ThrottleRecord(throttle.leader, throttle.follower)
                for topic, throttle in sorted(look.throttles.items())
            },
            look.missing,
        )

    def to_look(self) -> ClusterLook:
        """Return the look that was written down."""
        brokers = None
        if self.brokers is not None:
            brokers = {
                broker: BrokerLook(
                    seen.fenced,
                    seen.leader_rate,
                    seen.follower_rate,
                    seen.usable_bytes,
                    seen.total_bytes,
                    seen.offline_directories,
                )
                for broker, seen in self.brokers.items()
            }
        return ClusterLook(
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


#: Every broker, and every throttled replica of topics in movement.
FORMAT = RecordFormat(ClusterRecord, schemas=(1, 2), most_bytes=16 << 20)


def read_cluster_look(value: bytes) -> ClusterRecord:
    """Decode a value. Raises RefusedError."""
    return FORMAT.decode(value)
