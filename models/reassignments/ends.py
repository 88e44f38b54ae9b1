"""How a reassignment ended, and whether brokers' metadata can show its end."""

from __future__ import annotations

from collections.abc import Sequence

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.controllers import missing_from_isr, reverted, target
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignment_lines import EndedReassignment
from caughtup.models.records.reassignments import ClusterRecord, ReassignmentRecord


def outcome(last: ReassignmentRecord, original: tuple[int, ...], replicas: tuple[int, ...]) -> str:
    """Return the outcome from the last observation, the original replicas and those now.

    A cancelled reassignment may leave the original replicas in another order, so only their set
    counts. ``reverted-partial``: it was cancelled after a change of target, and replicas that the
    first target added stayed without ever having been in sync.
    """
    if replicas == target(last):
        return "completed"
    if set(replicas) == set(original):
        return "cancelled"
    return "reverted-partial" if set(replicas) == set(reverted(last)) else "superseded"


def ended(
    last: ReassignmentRecord,
    original: tuple[int, ...],
    replicas: tuple[int, ...] | None,
    since_ms: int,
    at_ms: int,
) -> EndedReassignment:
    """Return the end of a reassignment that left these replicas (None: the topic is gone)."""
    how = "vanished" if replicas is None else outcome(last, original, replicas)
    return EndedReassignment(
        topic=last.topic,
        partition=last.partition,
        outcome=how,
        at_ms=at_ms,
        original=original,
        target=target(last),
        replicas=replicas,
        seconds=max(0, at_ms - since_ms) / 1000,
    )


def is_another_reassignment(
    last: ReassignmentRecord,
    original: tuple[int, ...],
    observation: ReassignmentRecord,
    cluster: ClusterRecord | None,
) -> bool:
    """Return whether an observation is of another reassignment, not of a changed target.

    A change of target keeps all present replicas in KRaft, and the original ones with ZooKeeper.
    If the last one only added replicas, it is another reassignment once those are in sync.
    """
    in_kraft = cluster is not None and not cluster.zookeeper
    if not set(observation.replicas).issuperset(last.replicas if in_kraft else original):
        return True
    if set(observation.adding) == set(last.adding) or set(reverted(observation)) != set(
        target(last)
    ):
        return False
    return bool(observation.isr) and not missing_from_isr(
        changed(last, isr=observation.isr), cluster
    )


def metadata_shows(
    observations: Sequence[ReassignmentRecord],
    cluster: ClusterRecord | None,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader_epoch: int | None,
) -> str:
    """Return whether a broker's metadata shows the end of a reassignment that is not listed.

    ``over``: it does. ``older``: it is from before the end, or another topic's. ``unclear``: it
    may be either, for instance if the replicas are those of an earlier target.

    Metadata may be older than the controller's list, and only some ends can be recognised: an end
    that removes a replica raises the leader epoch, and one that keeps all has the added replicas
    in sync. The last of the ``observations`` may have met the end, between list and metadata.
    Metadata from before the reassignment differs from its end unless that of the observations was
    older, too.
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
    in_sync = not missing_from_isr(changed(last, isr=isr), cluster)
    return "over" if in_sync and replicas == target(last) else "unclear"


class Endings:
    """Holds back an end until list and metadata agree, or metadata is the same twice.

    The controller lists reassignments, a broker's metadata shows the partition's replicas, and
    either may be ahead of the other by a round or two.
    """

    def __init__(self) -> None:
        self._unsure: dict[TopicPartition, tuple[int, ...]] = {}

    def is_over(
        self, last: ReassignmentRecord, replicas: tuple[int, ...] | None, isr: tuple[int, ...]
    ) -> bool:
        """Return whether metadata shows how the reassignment of an unlisted partition ended.

        ``replicas`` (None: the partition is gone) and ``isr`` are those of the metadata.
        """
        partition = last.topic_partition
        if replicas is None or _agrees(last, replicas, isr):
            self.forget(partition)
            return True
        before = self._unsure.get(partition)
        self._unsure[partition] = replicas
        return before == replicas

    def forget(self, partition: TopicPartition) -> None:
        """Remove a partition that is listed, or whose end was published."""
        self._unsure.pop(partition, None)


def _agrees(last: ReassignmentRecord, replicas: tuple[int, ...], isr: tuple[int, ...]) -> bool:
    """Return whether metadata cannot be from before the end."""
    if set(replicas) == set(last.replicas):
        # No replica is removed: only the ISR shows whether the added ones have caught up.
        return not last.removing and set(last.adding) <= set(isr)
    original = reverted(last) if last.original is None else last.original
    return set(replicas) in [set(end) for end in (target(last), reverted(last), original)]
