"""How a reassignment ended, and whether what the brokers show of it can be its end at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking.controllers import missing_from_isr, reverted, target
from caughtup.models.reassignments.tracking.observation import (
    ClusterObservation,
    PartitionObservation,
)

OUTCOMES = ("completed", "cancelled", "superseded", "reverted-partial", "vanished")


@dataclass(frozen=True, slots=True)
class EndedReassignment:
    """A reassignment that is over, and how it ended (one of OUTCOMES).

    ``target``: the replicas it was to have at last. ``replicas``: those it has, None if the
    topic is gone. ``original``: those it had before. ``since_ms``: when it was first observed.
    """

    partition: TopicPartition
    outcome: str
    at_ms: int
    target: tuple[int, ...]
    replicas: tuple[int, ...] | None
    original: tuple[int, ...]
    since_ms: int


def outcome(
    last: PartitionObservation, original: tuple[int, ...], replicas: tuple[int, ...]
) -> str:
    """Return how a reassignment ended: by its last observation, its origin and its replicas now.

    A broker that was asked for once loses its place in the original order, so of those only the
    set must be back. ``reverted-partial``: it was cancelled after a change of target, and what
    the first target added stayed without ever having been in sync.
    """
    if replicas == target(last):
        return "completed"
    if set(replicas) == set(original):
        return "cancelled"
    return "reverted-partial" if set(replicas) == set(reverted(last)) else "superseded"


def ended(
    last: PartitionObservation,
    original: tuple[int, ...],
    replicas: tuple[int, ...] | None,
    since_ms: int,
    at_ms: int,
) -> EndedReassignment:
    """Return the end of a reassignment that left these replicas (None: the topic is gone)."""
    how = "vanished" if replicas is None else outcome(last, original, replicas)
    return EndedReassignment(last.partition, how, at_ms, target(last), replicas, original, since_ms)


def is_another_reassignment(
    last: PartitionObservation,
    original: tuple[int, ...],
    observation: PartitionObservation,
    cluster: ClusterObservation | None,
) -> bool:
    """Return whether an observation is of another reassignment than the last, not of a new target.

    A change of target keeps all the present replicas in KRaft, and the original ones with
    ZooKeeper. Where replicas were only added, it is another one once those are in sync.
    """
    in_kraft = cluster is not None and not cluster.zookeeper
    if not set(observation.replicas).issuperset(last.replicas if in_kraft else original):
        return True
    if set(observation.adding) == set(last.adding) or set(reverted(observation)) != set(
        target(last)
    ):
        return False
    return bool(observation.isr) and not missing_from_isr(
        replace(last, isr=observation.isr), cluster
    )


def metadata_shows(
    observations: Sequence[PartitionObservation],
    cluster: ClusterObservation | None,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader_epoch: int | None,
) -> str:
    """Return whether a broker's metadata of a reassignment that isn't listed shows its end.

    ``over``: it does. ``older``: it is what was before the end, or is another topic's. ``unclear``:
    nobody knows yet, for instance where it is what was while another target was asked for.

    A broker's metadata may be older than the controller's list, and only some ends show: one
    that takes a replica away raises the leader epoch, and one that leaves all has what was added
    in sync. The last of the ``observations`` may have met the end itself, between the list and the
    metadata. What is older than the reassignment differs from its end as long as the observations'
    own metadata wasn't older.
    """
    last = observations[-1]
    lost = not set(replicas).issuperset(last.replicas)
    seen = [
        observation.leader_epoch
        for observation in observations[:-1]
        if observation.leader_epoch is not None
    ]
    least = max(seen, default=last.leader_epoch)
    if leader_epoch is not None and least is not None:
        if leader_epoch < least:
            return "older"
        if lost and leader_epoch == least:
            return "older" if seen else "unclear"
    if lost:
        epochs = leader_epoch, last.leader_epoch
        rose = epochs[0] is not None and epochs[1] is not None and epochs[0] > epochs[1]
        asked_for_before = any(replicas == observation.replicas for observation in observations)
        return "over" if rose or not asked_for_before else "unclear"
    in_sync = not missing_from_isr(replace(last, isr=isr), cluster)
    return "over" if in_sync and replicas == target(last) else "unclear"
