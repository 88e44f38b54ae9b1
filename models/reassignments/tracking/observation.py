"""What one round observed of reassigned partitions: values only, nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from caughtup.models.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionObservation:
    """One observation of a reassigned partition. Lists of brokers keep Kafka's order.

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
        """The replicas there were before (ORS), as far as this observation shows."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    @property
    def has_metadata(self) -> bool:
        """Whether a broker's metadata of it was had: it has a leader, its epoch or an ISR."""
        return self.leader is not None or self.leader_epoch is not None or bool(self.isr)

    @property
    def leader_end(self) -> int | None:
        """The leader's log end offset, None if unknown."""
        return None if self.leader is None else self.log_ends.get(self.leader)

    def offsets_behind(self, replica: int) -> int | None:
        """Return how many offsets a replica has yet to copy from its leader, None if unknown."""
        head, end = self.leader_end, self.log_ends.get(replica)
        return None if head is None or end is None else max(0, head - end)

    def bytes_behind(self, replica: int) -> int | None:
        """Return by how many bytes a replica's log is smaller than its leader's, None if unknown."""
        whole = None if self.leader is None else self.sizes.get(self.leader)
        part = self.sizes.get(replica)
        return None if whole is None or part is None else max(0, whole - part)


@dataclass(frozen=True, slots=True)
class BrokerObservation:
    """A registered broker. None stands for what is unknown, or a rate that isn't set.

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
    brokers can be, such as (4, 1), from what they support; None if it is unknown, or where
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
    """Return the offsets that the furthest added replica has yet to copy; None if one is unknown."""
    behind = [observation.offsets_behind(replica) for replica in observation.adding]
    known = [offsets for offsets in behind if offsets is not None]
    if observation.leader_end is None or len(known) < len(behind):
        return None
    return max(known, default=0)


def lasting_since(
    observations: Sequence[PartitionObservation], holds: Callable[[PartitionObservation], bool]
) -> tuple[int, int]:
    """Return since when (ms) something has held up to the last observation, and at how many."""
    since_ms, count = observations[-1].as_of_ms, 0
    for one in reversed(observations):
        if not holds(one):
            break
        since_ms, count = one.as_of_ms, count + 1
    return since_ms, count
