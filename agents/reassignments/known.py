"""What the probe knows of each reassignment: its beginning, and when it has really ended.

The list of reassignments is the controller's, what became of a partition a broker's metadata, and
either may be ahead of the other by a round or two.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from caughtup.agents.kafka.protocol.cluster_answers import PartitionInfo
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking import controllers, ends
from caughtup.models.reassignments.tracking.observation import (
    ClusterObservation,
    PartitionObservation,
)
from caughtup.models.records.cluster_observations import CLUSTER_KEY
from caughtup.models.records.decoding import require_past
from caughtup.models.records.reassignments import ReassignmentRecord, read_reassignment


@dataclass(frozen=True, slots=True)
class KnownReassignment:
    """The last observation of a reassignment, and what is known of its beginning.

    ``since_ms``: when it was first observed. ``original``: the replicas before it. None: unknown.
    """

    observation: PartitionObservation
    since_ms: int | None = None
    original: tuple[int, ...] | None = None

    def began(
        self, observation: PartitionObservation, cluster: ClusterObservation | None
    ) -> tuple[int | None, tuple[int, ...] | None]:
        """Return ``since_ms`` and ``original`` as far as they hold for what is observed now.

        Of another reassignment, which took the place of this one, they are unknown.
        """
        original = self.original
        if original is None:
            original = controllers.reverted(self.observation)
        if ends.is_another_reassignment(self.observation, original, observation, cluster):
            return None, None
        return self.since_ms, self.original


class PublishedReassignments:
    """The reassignments on caughtup-reassignments, as the agent reads them from its start on."""

    def __init__(self) -> None:
        self._ongoing: dict[TopicPartition, KnownReassignment] = {}

    @property
    def ongoing(self) -> Mapping[TopicPartition, KnownReassignment]:
        """Those whose end wasn't read."""
        return self._ongoing

    def apply(self, record: ReassignmentRecord, cluster: ClusterObservation | None) -> None:
        """Apply the next record that was read. ``cluster``: what was observed of it last."""
        partition = record.topic_partition
        if record.ended:
            self._ongoing.pop(partition, None)
        if record.ended or record.unlisted:
            return
        known, observation = self._ongoing.get(partition), record.to_observation()
        since_ms, original = record.since_ms, record.original
        if known is not None:
            began_ms, before = known.began(observation, cluster)
            since_ms = since_ms if began_ms is None else began_ms
            original = original if before is None else before
        self._ongoing[partition] = KnownReassignment(
            observation,
            record.as_of_ms if since_ms is None else min(since_ms, record.as_of_ms),
            controllers.reverted(observation) if original is None else original,
        )


def read_back(
    known: dict[TopicPartition, KnownReassignment],
    key: bytes | None,
    value: bytes | None,
    clock_ms: int,
    unfinished: Collection[TopicPartition] = (),
) -> None:
    """Add what a retained record says of a reassignment, or forget one that has ended.

    The last of each partition's records counts. One that ended stays known while it is
    ``unfinished``: its end was written, and nobody was left to publish what follows from it.
    Raises RefusedError.
    """
    if key == CLUSTER_KEY:
        return
    partition, record = read_reassignment(key, value)
    if record is None or record.ended:
        if partition not in unfinished:
            known.pop(partition, None)
        return
    require_past(record.as_of_ms, clock_ms)
    since_ms = record.as_of_ms if record.since_ms is None else record.since_ms
    known[partition] = KnownReassignment(record.to_observation(), since_ms, record.original)


class Endings:
    """Holds back an end until list and metadata agree, or metadata says the same twice."""

    def __init__(self) -> None:
        self._unsure: dict[TopicPartition, tuple[int, ...]] = {}

    def is_over(self, known: KnownReassignment, info: PartitionInfo | None) -> bool:
        """Return whether a partition that isn't listed shows how its reassignment ended.

        ``info``: its metadata now (None: it is gone).
        """
        partition = known.observation.partition
        if info is None or _agrees(known, info):
            self.forget(partition)
            return True
        before = self._unsure.get(partition)
        self._unsure[partition] = info.replicas
        return before == info.replicas

    def forget(self, partition: TopicPartition) -> None:
        """Forget a partition that is listed, or whose end was published."""
        self._unsure.pop(partition, None)


def _agrees(known: KnownReassignment, info: PartitionInfo) -> bool:
    """Return whether metadata can't be from before the end."""
    observation = known.observation
    if set(info.replicas) == set(observation.replicas):
        # Nobody is to leave: only the ISR tells whether who was to come is there.
        return not observation.removing and set(observation.adding) <= set(info.isr)
    original = observation.original if known.original is None else known.original
    ends = (controllers.target(observation), controllers.reverted(observation), original)
    return set(info.replicas) in [set(end) for end in ends]
