"""The reassignments that the page shows: the worst, how many of each verdict, how others ended."""

from __future__ import annotations

from typing import Any

from caughtup.agents.views.reassignment_lines import worst_first
from caughtup.agents.views.reassignments import (
    ended_reassignment,
    orphaned_throttle,
    page_reassignment,
    verdict_counts,
)
from caughtup.models.state.cluster import ClusterState

#: Reassignments that the page lists, the worst; the others it counts.
REASSIGNMENTS_SHOWN = 50


def reassignment_view(
    state: ClusterState, now_ms: int, most: int = REASSIGNMENTS_SHOWN
) -> dict[str, Any]:
    """Describe reassignments, those that fare worst only, and how others ended."""
    tracker, watch = state.reassignments, state.reassignment_watch
    worst, rows = worst_first(tracker, watch)[:most], []
    for reassignment in worst:
        with state.faults.isolated("page", str(reassignment.partition), now_ms):
            rows.append(page_reassignment(tracker, reassignment, now_ms))
    return {
        "reassignments": rows,
        "reassignment_counts": verdict_counts(tracker, watch),
        "reassignments_missing": tracker.cluster.missing if tracker.cluster is not None else (),
        "throttles": [orphaned_throttle(throttle) for throttle in watch.orphaned(now_ms)],
        "recent_reassignments": [ended_reassignment(ended) for ended in reversed(tracker.ended)],
    }
