"""Reassignments as a command observes them: after the service's last observations, if any."""

from __future__ import annotations

from collections.abc import Iterable

from caughtup.agents.clock import now_ms
from caughtup.agents.probes.reassignments import ReassignmentRound
from caughtup.agents.reassignments.agent import apply_record
from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignment_lines import Line, Reassignment
from caughtup.models.state.cluster import ClusterState

#: The service's observations are the past of what is observed now for so long (ms) after the last;
#: then a reassignment may have ended, and another one of the same partition begun.
_PAST_MS = 120_000


class ReassignmentView:
    """Applies rounds of observations, and says of each reassignment how it fares."""

    def __init__(self, state: ClusterState) -> None:
        """``state`` gets what is observed."""
        self._state = state
        self._aged: frozenset[TopicPartition] = frozenset()

    def apply_records(
        self, records: Iterable[tuple[bytes | None, bytes | None]], at_ms: int | None = None
    ) -> None:
        """Apply the records of caughtup-reassignments, as a service wrote them."""
        for key, value in records:
            apply_record(self._state, key, value)
        tracker = self._state.reassignments
        now = now_ms() if at_ms is None else at_ms
        for partition, tracked in list(tracker.ongoing.items()):
            if now - tracked.latest.as_of_ms > _PAST_MS:
                del tracker.ongoing[partition]
        tracker.ended.clear()
        self._aged = frozenset(tracker.ongoing)

    def take(self, found: ReassignmentRound) -> None:
        """Apply what a round observed; what it no longer lists is over, if it could list any."""
        tracker = self._state.reassignments
        tracker.apply_cluster(found.cluster)
        if not found.listed:
            return
        for observation in found.ongoing:
            tracker.apply(observation)
        for partition in tracker.ongoing.keys() - {
            observation.topic_partition for observation in found.ongoing
        }:
            del tracker.ongoing[partition]
        self._aged &= tracker.ongoing.keys()

    def assess(self, budget_seconds: float | None = None) -> None:
        """Work out how every reassignment fares, as of now."""
        watch = self._state.reassignment_watch
        for _ in watch.assess(self._state.reassignments, now_ms(), budget_seconds):
            pass

    def lines(self) -> list[Line]:
        """Describe all that is in movement, those that need somebody first, and throttles left over.

        A command that never saw a reassignment before doesn't know since when it has been ongoing.
        """
        found = self._state.reassignment_watch.lines(self._state.reassignments, now_ms())
        return [
            changed(line, age_seconds=None, idle_seconds=None)
            if isinstance(line, Reassignment) and line.topic_partition not in self._aged
            else line
            for line in found
        ]
