"""What becomes of reassignments: planned, promoted or dropped, each published once.

The same events as those of tasks (``models/decisions/movements.py``), of the kind ``partition``. A
reassignment is a partition and the replicas that it is to have: where the target is changed, it is
dropped and another one is planned. Events that were published before a restart are read back, so
that nothing is published again as long as the topic keeps them.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from typing import Any

from caughtup.models.decisions.movements import SCHEMA, Event
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking import controllers
from caughtup.models.reassignments.tracking.ends import EndedReassignment
from caughtup.models.reassignments.tracking.tracker import ReassignmentTracker

KIND = "partition"
_PLANNED, _PROMOTED, _DROPPED = "planned", "promoted", "dropped"
_COMPLETED, _SUPERSEDED = "completed", "superseded"


class ReassignmentEvents:
    """The reassignments that were published as planned, and of which no end was."""

    def __init__(self) -> None:
        self._open: dict[TopicPartition, Event] = {}

    def restore(self, event: Mapping[str, Any]) -> None:
        """Apply an event that was published before this process started, in their order.

        Raises CaughtupError when it isn't one of ours.
        """
        if (
            event.get("kind") != KIND
            or event.get("event") not in (_PLANNED, _PROMOTED, _DROPPED)
            or not isinstance(event.get("topic"), str)
            or type(event.get("partition")) is not int
            or not _are_brokers(event.get("from"))
            or not _are_brokers(event.get("to"))
        ):
            raise CaughtupError("bad_movement", "not an event of a partition's movement")
        self._apply(dict(event))

    def new_events(self, tracker: ReassignmentTracker, partition: TopicPartition) -> list[Event]:
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
            if tuple(known["to"]) == target:
                return []
            dropped = self._end(known, _DROPPED, at_ms, _SUPERSEDED)
            return [dropped, self._plan(partition, tracked.original, target, at_ms)]
        ended = _end_of(tracker, partition)
        if known is None or ended is None:
            return []
        at_ms = ended.at_ms
        if ended.outcome == _COMPLETED and tuple(known["to"]) == ended.target:
            return [self._end(known, _PROMOTED, at_ms)]
        if ended.outcome == _COMPLETED:  # its target was changed between two
            dropped = self._end(known, _DROPPED, at_ms, _SUPERSEDED)
            planned = self._plan(partition, ended.original, ended.target, at_ms)
            return [dropped, planned, self._end(planned, _PROMOTED, at_ms)]
        return [self._end(known, _DROPPED, at_ms, ended.outcome)]

    def on_their_way(self) -> list[Event]:
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
        before: tuple[int, ...],
        target: tuple[int, ...],
        at_ms: int,
    ) -> Event:
        return self._apply(
            {
                "schema": SCHEMA,
                "event": _PLANNED,
                "kind": KIND,
                "topic": partition.topic,
                "partition": partition.partition,
                "from": list(before),
                "to": list(target),
                "at_ms": at_ms,
            }
        )

    def _end(self, planned: Event, event: str, at_ms: int, why: str | None = None) -> Event:
        because = {} if why is None else {"why": why}
        return self._apply({**planned, "event": event, "at_ms": at_ms, **because})

    def _apply(self, event: Event) -> Event:
        partition = TopicPartition(event["topic"], event["partition"])
        if event["event"] == _PLANNED:
            self._open[partition] = event
        else:
            self._open.pop(partition, None)
        return event


def _end_of(tracker: ReassignmentTracker, partition: TopicPartition) -> EndedReassignment | None:
    """Return the last end of a partition's reassignment."""
    return next((e for e in reversed(tracker.ended) if e.partition == partition), None)


def _are_brokers(value: object) -> bool:
    return isinstance(value, list) and all(type(broker) is int for broker in value)
