"""The movements of reassignments: planned, promoted or dropped, each published once.

They are like those of tasks (``models/decisions/movements.py``), of the kind ``partition``. A
reassignment is a partition and its target: if the target is changed, it is dropped and another
one is planned. Events that were published before a restart are read back, so that none is
published again as long as the topic keeps them.
"""

from __future__ import annotations

from collections.abc import KeysView

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments import controllers
from caughtup.models.reassignments.tracker import ReassignmentTracker
from caughtup.models.records.fields import changed, or_absent
from caughtup.models.records.movements import (
    PARTITIONS,
    PartitionMovementRecord,
    Step,
)
from caughtup.models.records.reassignment_lines import EndedReassignment

_COMPLETED, _SUPERSEDED = "completed", "superseded"


class ReassignmentEvents:
    """The reassignments that were published as planned, and whose end was not published."""

    def __init__(self) -> None:
        self._open: dict[TopicPartition, PartitionMovementRecord] = {}

    def restore(self, event: PartitionMovementRecord) -> None:
        """Apply an event that was published before this process started; call it in their order."""
        self._apply(event)

    def new_events(
        self, tracker: ReassignmentTracker, partition: TopicPartition
    ) -> list[PartitionMovementRecord]:
        """Return the new events of a partition's reassignment, at its last observation's time.

        To be called after each observation of the partition, and after its end.
        """
        tracked = tracker.ongoing.get(partition)
        known = self._open.get(partition)
        if tracked is not None:
            if not tracked.latest.replicas:  # an observation without replicas has no target
                return []
            target, at_ms = controllers.target(tracked.latest), tracked.latest.as_of_ms
            if known is None:
                return [self._plan(partition, tracked.original, target, at_ms)]
            if known.to == target:
                return []
            dropped = self._end(known, "dropped", at_ms, _SUPERSEDED)
            return [dropped, self._plan(partition, tracked.original, target, at_ms)]
        ended = _end_of(tracker, partition)
        if known is None or ended is None:
            return []
        at_ms = ended.at_ms
        if ended.outcome == _COMPLETED and known.to == ended.target:
            return [self._end(known, "promoted", at_ms)]
        if ended.outcome == _COMPLETED:  # its target was changed between two
            dropped = self._end(known, "dropped", at_ms, _SUPERSEDED)
            planned = self._plan(partition, ended.original, ended.target, at_ms)
            return [dropped, planned, self._end(planned, "promoted", at_ms)]
        return [self._end(known, "dropped", at_ms, ended.outcome)]

    def on_their_way(self) -> list[PartitionMovementRecord]:
        """Return the ``planned`` event of each reassignment without an end, by partition."""
        return [self._open[partition] for partition in sorted(self._open)]

    def partitions(self) -> KeysView[TopicPartition]:
        """Return the partitions of reassignments whose end was not published."""
        return self._open.keys()

    def forget(self, partition: TopicPartition) -> None:
        """Remove a reassignment that does not exist."""
        self._open.pop(partition, None)

    def _plan(
        self,
        partition: TopicPartition,
        original: tuple[int, ...],
        target: tuple[int, ...],
        at_ms: int,
    ) -> PartitionMovementRecord:
        return self._apply(
            PartitionMovementRecord(
                PARTITIONS.schema, "planned", "partition", *partition, at_ms, target, original
            )
        )

    def _end(
        self,
        planned: PartitionMovementRecord,
        step: Step,
        at_ms: int,
        why: str | None = None,
    ) -> PartitionMovementRecord:
        return self._apply(changed(planned, event=step, at_ms=at_ms, why=or_absent(why)))

    def _apply(self, event: PartitionMovementRecord) -> PartitionMovementRecord:
        if event.event == "planned":
            self._open[event.topic_partition] = event
        else:
            self._open.pop(event.topic_partition, None)
        return event


def _end_of(tracker: ReassignmentTracker, partition: TopicPartition) -> EndedReassignment | None:
    """Return the last end of a partition's reassignment."""
    return next((e for e in reversed(tracker.ended) if e.topic_partition == partition), None)
