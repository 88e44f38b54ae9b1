"""What becomes of reassignments: planned, promoted or dropped, each published once.

The same events as those of tasks (``models/decisions/movements.py``), of the kind ``partition``. A
reassignment is a partition and the replicas that it is to have: where the target is changed, it is
dropped and another one is planned. Events that were published before a restart are read back, so
that nothing is published again as long as the topic keeps them.
"""

from __future__ import annotations

from collections.abc import KeysView
from dataclasses import dataclass, replace
from typing import Literal

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking import controllers
from caughtup.models.reassignments.tracking.ends import EndedReassignment
from caughtup.models.reassignments.tracking.tracker import ReassignmentTracker

Step = Literal["planned", "promoted", "dropped"]

_COMPLETED, _SUPERSEDED = "completed", "superseded"


@dataclass(frozen=True, slots=True)
class ReassignmentEvent:
    """A step of a reassignment from the ``original`` replicas to the ``target``.

    ``at_ms``: when it was observed. ``why``: how it ended, where it was dropped.
    """

    step: Step
    partition: TopicPartition
    original: tuple[int, ...]
    target: tuple[int, ...]
    at_ms: int
    why: str | None = None


class ReassignmentEvents:
    """The reassignments that were published as planned, and of which no end was."""

    def __init__(self) -> None:
        self._open: dict[TopicPartition, ReassignmentEvent] = {}

    def restore(self, event: ReassignmentEvent) -> None:
        """Apply an event that was published before this process started, in their order."""
        self._apply(event)

    def new_events(
        self, tracker: ReassignmentTracker, partition: TopicPartition
    ) -> list[ReassignmentEvent]:
        """Return what has become of a partition's reassignment, at the time of its last observation.

        To be asked after each observation of the partition, and after its end.
        """
        tracked = tracker.ongoing.get(partition)
        known = self._open.get(partition)
        if tracked is not None:
            if not tracked.latest.replicas:  # nothing was observed, and no other target
                return []
            target, at_ms = controllers.target(tracked.latest), tracked.latest.as_of_ms
            if known is None:
                return [self._plan(partition, tracked.original, target, at_ms)]
            if known.target == target:
                return []
            dropped = self._end(known, "dropped", at_ms, _SUPERSEDED)
            return [dropped, self._plan(partition, tracked.original, target, at_ms)]
        ended = _end_of(tracker, partition)
        if known is None or ended is None:
            return []
        at_ms = ended.at_ms
        if ended.outcome == _COMPLETED and known.target == ended.target:
            return [self._end(known, "promoted", at_ms)]
        if ended.outcome == _COMPLETED:  # its target was changed between two
            dropped = self._end(known, "dropped", at_ms, _SUPERSEDED)
            planned = self._plan(partition, ended.original, ended.target, at_ms)
            return [dropped, planned, self._end(planned, "promoted", at_ms)]
        return [self._end(known, "dropped", at_ms, ended.outcome)]

    def on_their_way(self) -> list[ReassignmentEvent]:
        """Return the event by which each reassignment without an end was planned, sorted."""
        return [self._open[partition] for partition in sorted(self._open)]

    def partitions(self) -> KeysView[TopicPartition]:
        """Return the partitions of reassignments of which no end was published."""
        return self._open.keys()

    def forget(self, partition: TopicPartition) -> None:
        """Forget a reassignment that there isn't."""
        self._open.pop(partition, None)

    def _plan(
        self,
        partition: TopicPartition,
        original: tuple[int, ...],
        target: tuple[int, ...],
        at_ms: int,
    ) -> ReassignmentEvent:
        return self._apply(ReassignmentEvent("planned", partition, original, target, at_ms))

    def _end(
        self, planned: ReassignmentEvent, step: Step, at_ms: int, why: str | None = None
    ) -> ReassignmentEvent:
        return self._apply(replace(planned, step=step, at_ms=at_ms, why=why))

    def _apply(self, event: ReassignmentEvent) -> ReassignmentEvent:
        if event.step == "planned":
            self._open[event.partition] = event
        else:
            self._open.pop(event.partition, None)
        return event


def _end_of(tracker: ReassignmentTracker, partition: TopicPartition) -> EndedReassignment | None:
    """Return the last end of a partition's reassignment."""
    return next((e for e in reversed(tracker.ended) if e.partition == partition), None)
