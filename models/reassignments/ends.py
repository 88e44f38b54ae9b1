"""How a reassignment ended, and whether what the brokers show of it can be its end at all."""

from __future__ import annotations

from collections.abc import Sequence

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.controllers import missing_from_isr, reverted, target
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignment_lines import EndedReassignment
from caughtup.models.records.reassignments import ClusterRecord, ReassignmentRecord

OUTCOMES = ("completed", "cancelled", "superseded", "reverted-partial", "vanished")


def outcome(last: ReassignmentRecord, original: tuple[int, ...], replicas: tuple[int, ...]) -> str:
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
        changed(last, isr=observation.isr), cluster
    )


def metadata_shows(
    observations: Sequence[ReassignmentRecord],
    cluster: ClusterRecord | None,
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
    in_sync = not missing_from_isr(changed(last, isr=isr), cluster)
    return "over" if in_sync and replicas == target(last) else "unclear"


class Endings:
    """Holds back an end until list and metadata agree, or metadata says the same twice.

    The list of reassignments is the controller's, what became of a partition a broker's metadata,
    and either may be ahead of the other by a round or two.
    """

    def __init__(self) -> None:
        self._unsure: dict[TopicPartition, tuple[int, ...]] = {}

    def is_over(
        self, last: ReassignmentRecord, replicas: tuple[int, ...] | None, isr: tuple[int, ...]
    ) -> bool:
        """Return whether a partition that isn't listed shows how its reassignment ended.

        ``replicas`` (None: the partition is gone) and ``isr``: as metadata has them now.
        """
        partition = last.topic_partition
        if replicas is None or _agrees(last, replicas, isr):
            self.forget(partition)
            return True
        before = self._unsure.get(partition)
        self._unsure[partition] = replicas
        return before == replicas

    def forget(self, partition: TopicPartition) -> None:
        """Forget a partition that is listed, or whose end was published."""
        self._unsure.pop(partition, None)


def _agrees(last: ReassignmentRecord, replicas: tuple[int, ...], isr: tuple[int, ...]) -> bool:
    """Return whether metadata can't be from before the end."""
    if set(replicas) == set(last.replicas):
        # No replica is to leave: only the ISR tells whether the added ones are there.
        return not last.removing and set(last.adding) <= set(isr)
    original = reverted(last) if last.original is None else last.original
    return set(replicas) in [set(end) for end in (target(last), reverted(last), original)]
