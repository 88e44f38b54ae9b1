"""The reassignments that the page shows: the worst, how many of each verdict, how others ended."""

from __future__ import annotations

from typing import Any

from caughtup.models.state.cluster import ClusterState

#: Reassignments that the page lists, the worst; the others it counts.
REASSIGNMENTS_SHOWN = 50


def reassignment_view(
    state: ClusterState, now_ms: int, most: int = REASSIGNMENTS_SHOWN
) -> dict[str, Any]:
    """Describe reassignments, those that fare worst only, and how others ended."""
    tracker, watch = state.reassignments, state.reassignment_watch
    rows = []
    for partition in watch.worst_first(tracker)[:most]:
        with state.faults.isolated("page", str(partition), now_ms):
            rows.append(watch.detailed(tracker, partition, now_ms))
    return {
        "reassignments": rows,
        "reassignment_counts": watch.verdict_counts(tracker),
        "reassignments_missing": tracker.cluster.missing if tracker.cluster is not None else (),
        "throttles": [throttle._asdict() for throttle in watch.orphaned(now_ms)],
        "recent_reassignments": tracker.ended[::-1],
    }
