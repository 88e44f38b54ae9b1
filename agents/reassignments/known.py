"""When a partition that is no longer listed as in movement has really come to its end.

The list is the controller's, what became of the partition a broker's metadata, and either may be
ahead of the other by a round or two.
"""

from __future__ import annotations

from dataclasses import dataclass

from caughtup.agents.kafka.protocol.cluster_answers import Shape
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking import controllers
from caughtup.models.reassignments.tracking.observation import PartitionObservation


@dataclass(frozen=True, slots=True)
class KnownReassignment:
    """The last look at a movement, and what is known of its beginning."""

    observation: PartitionObservation
    since_ms: int | None = None
    original: tuple[int, ...] | None = None


class Endings:
    """Holds back an end until list and metadata agree, or a second look has the same replicas."""

    def __init__(self) -> None:
        self._unsure: dict[TopicPartition, tuple[int, ...]] = {}

    def is_over(self, known: KnownReassignment, shape: Shape | None) -> bool:
        """Take that a partition isn't listed, and its shape now (None: it is gone).

        Tell whether that is how its movement ended.
        """
        partition = known.observation.partition
        if shape is None or _agrees(known, shape):
            self.forget(partition)
            return True
        before = self._unsure.get(partition)
        self._unsure[partition] = shape.replicas
        return before == shape.replicas

    def forget(self, partition: TopicPartition) -> None:
        """Take that a partition is listed, or that its end was told."""
        self._unsure.pop(partition, None)


def _agrees(known: KnownReassignment, shape: Shape) -> bool:
    """Tell whether a shape can't be one from before the end."""
    observation = known.observation
    if set(shape.replicas) == set(observation.replicas):
        # Nobody is to leave: only the ISR tells whether who was to come is there.
        return not observation.removing and set(observation.adding) <= set(shape.isr)
    original = observation.original if known.original is None else known.original
    ends = (controllers.target(observation), controllers.reverted(observation), original)
    return set(shape.replicas) in [set(end) for end in ends]
