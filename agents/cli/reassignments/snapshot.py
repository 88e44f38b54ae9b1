"""Reassignments as a command observes them: after the service's last observations, if any."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from caughtup.agents.clock import now_ms
from caughtup.agents.probes.reassignments import Round
from caughtup.agents.reassignments.records import apply_record
from caughtup.agents.views.reassignment_lines import reassignment_lines
from caughtup.models.ids import TopicPartition
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

    def take(self, found: Round) -> None:
        """Apply what a round observed; what it no longer lists is over, if it could list any."""
        tracker = self._state.reassignments
        tracker.apply_cluster(found.cluster)
        if not found.listed:
            return
        for observation in found.ongoing:
            tracker.apply(observation)
        for partition in tracker.ongoing.keys() - {
            observation.partition for observation in found.ongoing
        }:
            del tracker.ongoing[partition]
        self._aged &= tracker.ongoing.keys()

    def assess(self, budget_seconds: float | None = None) -> None:
        """Work out how every reassignment fares, as of now."""
        watch = self._state.reassignment_watch
        for _ in watch.assess(self._state.reassignments, now_ms(), budget_seconds):
            pass

    def lines(self) -> list[dict[str, Any]]:
        """Describe all that is in movement, those that need somebody first, and throttles left over.

        A command that never saw a reassignment before doesn't know since when it has been ongoing.
        """
        tracker, watch = self._state.reassignments, self._state.reassignment_watch
        lines = list(reassignment_lines(tracker, watch, now_ms()))
        for line in lines:
            if (
                line["kind"] == "partition"
                and TopicPartition(line["topic"], line["partition"]) not in self._aged
            ):
                del line["age_seconds"], line["idle_seconds"]
        return lines
