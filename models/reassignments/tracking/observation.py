"""What one look at partitions in movement saw: values only, nothing of it is decided here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from caughtup.models.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionObservation:
    """One look at a partition in movement. Lists of brokers keep Kafka's order.

    ``replicas``, ``adding`` and ``removing`` are the controller's; ``isr``, ``leader`` (None: it
    has none), ``leader_epoch`` and ``offline`` a broker's metadata. By broker: ``log_ends``, that
    replica's own log end offset, and ``sizes`` of its log in bytes. ``not_hosted``: brokers that
    answered that they hold no such replica. ``unanswered``: brokers that could not be asked, or
    answered with an error, so that nothing is known of their replica.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    as_of_ms: int
    leader_epoch: int | None = None
    offline: tuple[int, ...] = ()
    log_ends: Mapping[int, int] = field(default_factory=dict)
    sizes: Mapping[int, int] = field(default_factory=dict)
    not_hosted: tuple[int, ...] = ()
    unanswered: tuple[int, ...] = ()

    @property
    def original(self) -> tuple[int, ...]:
        """The replicas there were before (ORS), as far as this look can tell."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)


@dataclass(frozen=True, slots=True)
class BrokerObservation:
    """A registered broker. None stands for what could not be told, or a rate that isn't set.

    ``leader_rate`` and ``follower_rate``: its replication throttles, bytes a second.
    ``usable_bytes`` and ``total_bytes``: of the fullest of its log directories.
    ``offline_directories``: those that it cannot read.
    """

    fenced: bool | None = None
    leader_rate: int | None = None
    follower_rate: int | None = None
    usable_bytes: int | None = None
    total_bytes: int | None = None
    offline_directories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicThrottle:
    """``leader.`` and ``follower.replication.throttled.replicas`` as they are configured.

    Empty where not set; else ``*``, ``none``, or ``partition:broker,…``.
    """

    leader: str = ""
    follower: str = ""


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """What holds for all partitions of a round.

    ``brokers``: the registered ones; None if they could not be asked for. ``quorum_leader`` and
    ``quorum_epoch``: of the controllers' quorum. ``software``: the newest Kafka release that all
    brokers can be, such as (4, 1), from what they support; None if it can't be told, or where
    ZooKeeper still decides, which ``zookeeper`` says. ``throttles``: by topic, where one is set.
    ``missing``: what of this round could not be had, in words that an operator reads.
    """

    as_of_ms: int
    brokers: Mapping[int, BrokerObservation] | None = None
    quorum_leader: int | None = None
    quorum_epoch: int | None = None
    software: tuple[int, int] | None = None
    zookeeper: bool = False
    throttles: Mapping[str, TopicThrottle] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def offsets_remaining(observation: PartitionObservation) -> int | None:
    """Count the offsets that the furthest added replica has yet to copy; None if one is unknown."""
    head = observation.log_ends.get(observation.leader) if observation.leader is not None else None
    if head is None or any(replica not in observation.log_ends for replica in observation.adding):
        return None
    return max(
        (max(0, head - observation.log_ends[replica]) for replica in observation.adding), default=0
    )
