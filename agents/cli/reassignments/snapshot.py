"""Reassignments as a command observes them: after the service's last observations, if any."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from caughtup.agents.clock import now_ms
from caughtup.agents.probes.reassignments import Round
from caughtup.agents.process.fault_log import FaultLog
from caughtup.agents.reassignments.records import apply_record
from caughtup.agents.views.reassignments import OngoingReassignment, reassignment_line, worst_first
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.throttles.orphaned import removal, unused_throttles
from caughtup.models.state.cluster import ClusterState

#: The service's observations are the past of what is observed now for so long (ms) after the last;
#: then a reassignment may have ended, and another one of the same partition begun.
_PAST_MS = 120_000


class ReassignmentView:
    """Applies rounds of observations, and says of each reassignment how it fares.

    ``missing``: what the last round could not have, in words.
    """

    def __init__(self, cluster: str) -> None:
        self._state = ClusterState(cluster, {})
        FaultLog().attach(self._state)
        self._aged: frozenset[TopicPartition] = frozenset()
        self.missing: tuple[str, ...] = ()

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
        """Apply what a round observed; what it no longer lists is over."""
        tracker = self._state.reassignments
        tracker.apply_cluster(found.cluster)
        for observation in found.ongoing:
            tracker.apply(observation)
        for partition in tracker.ongoing.keys() - {
            observation.partition for observation in found.ongoing
        }:
            del tracker.ongoing[partition]
        self._aged &= tracker.ongoing.keys()
        self.missing = found.cluster.missing

    def assess(self, budget_seconds: float | None = None) -> None:
        """Work out how every reassignment fares, as of now."""
        watch = self._state.reassignment_watch
        for _ in watch.assess(self._state.reassignments, now_ms(), budget_seconds):
            pass

    def ongoing(self) -> list[OngoingReassignment]:
        """Return the reassignments, those that need somebody first."""
        return worst_first(self._state.reassignments, self._state.reassignment_watch)

    def line(self, reassignment: OngoingReassignment) -> dict[str, Any]:
        """Describe one for a person or a program.

        A command that never saw it before doesn't know since when it has been ongoing.
        """
        line = reassignment_line(self._state.reassignments, reassignment, now_ms())
        if reassignment.partition not in self._aged:
            del line["age_seconds"], line["idle_seconds"]
        return {"kind": "partition", "at_ms": reassignment.tracked.latest.as_of_ms, **line}

    def throttles(self) -> list[dict[str, Any]]:
        """Describe the throttles that no reassignment of now needs."""
        tracker = self._state.reassignments
        if tracker.cluster is None:
            return []
        moving = {p: tracked.latest.replicas for p, tracked in tracker.ongoing.items()}
        return [
            {
                "kind": "throttle",
                "at_ms": tracker.cluster.as_of_ms,
                "on": kind,
                "name": name,
                "what": what,
                "advice": removal(kind, name),
            }
            for kind, name, what in unused_throttles(tracker.cluster, moving)
        ]
