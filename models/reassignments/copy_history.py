"""What a replica's observations show: when it grew, stood, was near its leader, or went back."""

from __future__ import annotations

from caughtup.models.reassignments.tracking.observation import PartitionObservation


class CopyHistory:
    """A replica's history; the attributes are those of ReplicaProgress.

    ``started_ms``: when it last went back, from which on there is one copy to take rates of.
    """

    __slots__ = (
        "_broker",
        "_end",
        "_head",
        "_since_ms",
        "_start",
        "dropped_since_ms",
        "drops",
        "gained",
        "longest_step",
        "lost",
        "moved",
        "near_observations",
        "near_since_ms",
        "stands_since_ms",
        "started_ms",
    )

    def __init__(self, broker: int, since_ms: int, first_ms: int) -> None:
        self._broker, self._since_ms = broker, since_ms
        self._end: int | None = None
        self._head: int | None = None
        self._start: int | None = None
        self.moved, self.longest_step = False, 0
        self.drops, self.gained, self.lost = 0, 0, 0
        self.dropped_since_ms: int | None = None
        self.started_ms = self.stands_since_ms = first_ms
        self.near_since_ms: int | None = None
        self.near_observations = 0

    def add(self, observation: PartitionObservation) -> None:
        """Add the next observation."""
        at_ms = observation.as_of_ms
        apart = self._broker in observation.offline or self._broker in observation.isr
        if apart or observation.leader is None:  # it cannot copy, or needn't
            self.stands_since_ms, self.near_since_ms, self.near_observations = at_ms, None, 0
        end = observation.log_ends.get(self._broker)
        if end is None:
            return
        if end and (self._start is None or end < self._start):
            self._start = end
        if self._end is not None and end != self._end:
            self._changed(self._end, end, at_ms)
        self._end = end
        head = observation.leader_end
        if head is None:  # it may have had nothing to copy: nobody knows
            return
        there = end >= head
        if there:
            self.stands_since_ms = at_ms
        if not apart:
            if there or (self._head is not None and end >= self._head):
                self.near_since_ms = at_ms if self.near_since_ms is None else self.near_since_ms
                self.near_observations += 1
            else:
                self.near_since_ms, self.near_observations = None, 0
        self._head = head

    def _changed(self, before: int, end: int, at_ms: int) -> None:
        self.stands_since_ms = at_ms
        # A replica without anything is as far as one at the log's start, to which it goes at once.
        start = self._start or 0
        copied = max(end, start) - max(before, start)
        if end > before:
            self.moved = True
            self.gained += 0 if self.dropped_since_ms is None else copied
            if before:
                self.longest_step = max(self.longest_step, copied)
            return
        self.started_ms = at_ms
        if at_ms <= self._since_ms:
            return
        self.drops += 1
        if self.dropped_since_ms is None:
            self.dropped_since_ms = at_ms
        else:
            self.lost -= copied
