"""The values on caughtup-reassignments: what a round saw, written down and read back.

A partition's key is ``topic-partition``. What holds for all partitions of a round stands before
them under a key that no partition has.
"""

from __future__ import annotations

import msgspec

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignment_look import BrokerLook, ClusterLook, PartitionLook, TopicThrottle

SCHEMA = 2
CLUSTER_KEY = b"_cluster"


class ReassignmentRecord(msgspec.Struct, omit_defaults=True):
    """A look at a partition: broker ids, offsets, bytes and ms, as a PartitionLook has them.

    ``since_ms`` and ``original`` are what the service knows from before this look, so that it
    still does after a restart. ``unlisted`` marks a partition that is no longer listed, though
    metadata doesn't show yet how that ended. ``ended`` marks the last look at it; ``replicas`` is
    then its shape now, empty if it is gone. A tombstone follows. Schema 1 had neither sizes nor
    anything of the leader's epoch or of brokers that didn't tell.
    """

    schema: int
    topic: str
    partition: int
    as_of_ms: int
    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    leader: int | None = None
    log_ends: dict[int, int] = {}
    ended: bool = False
    leader_epoch: int | None = None
    offline: tuple[int, ...] = ()
    sizes: dict[int, int] = {}
    not_hosted: tuple[int, ...] = ()
    unanswered: tuple[int, ...] = ()
    since_ms: int | None = None
    original: tuple[int, ...] | None = None
    unlisted: bool = False

    @property
    def key(self) -> bytes:
        """The key that it is written under."""
        return f"{self.topic}-{self.partition}".encode()

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
            SCHEMA,
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
        """Give the look that was written down."""
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


class BrokerRecord(msgspec.Struct, omit_defaults=True):
    """A broker, as a BrokerLook has it."""

    fenced: bool | None = None
    leader_rate: int | None = None
    follower_rate: int | None = None
    usable_bytes: int | None = None
    total_bytes: int | None = None
    offline_directories: tuple[str, ...] = ()


class ThrottleRecord(msgspec.Struct, omit_defaults=True):
    """A topic's throttled replicas, as a TopicThrottle has them."""

    leader: str = ""
    follower: str = ""


class ClusterRecord(msgspec.Struct, omit_defaults=True):
    """What holds for all partitions of a round, as a ClusterLook has it."""

    schema: int
    as_of_ms: int
    brokers: dict[int, BrokerRecord] | None = None
    quorum_leader: int | None = None
    quorum_epoch: int | None = None
    software: tuple[int, int] | None = None
    zookeeper: bool = False
    throttles: dict[str, ThrottleRecord] = {}
    missing: tuple[str, ...] = ()

    @classmethod
    def from_look(cls, look: ClusterLook) -> ClusterRecord:
        """Write a look down."""
        brokers = None
        if look.brokers is not None:
            brokers = {
                broker: msgspec.convert(seen, BrokerRecord, from_attributes=True)
                for broker, seen in sorted(look.brokers.items())
            }
        return cls(
            SCHEMA,
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
        """Give the look that was written down."""
        brokers = None
        if self.brokers is not None:
            brokers = {
                broker: msgspec.convert(seen, BrokerLook, from_attributes=True)
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


decode_partition = msgspec.json.Decoder(ReassignmentRecord).decode
decode_cluster = msgspec.json.Decoder(ClusterRecord).decode
encode = msgspec.json.encode
