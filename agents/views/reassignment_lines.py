"""Reassignments as JSON objects, a line each: of the command, and of a service that it asks.

Unknown figures are absent; so is a time that never comes, for which JSON has no word.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, isinf
from typing import Any, NamedTuple

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.awaited_replica import State
from caughtup.models.reassignments.throttles.orphaned import removal, unused_throttles
from caughtup.models.reassignments.tracking import controllers
from caughtup.models.reassignments.tracking.tracked import TrackedReassignment
from caughtup.models.reassignments.tracking.tracker import ReassignmentTracker
from caughtup.models.reassignments.verdict import VERDICTS
from caughtup.models.reassignments.watch import AssessedReassignment, ReassignmentWatch

_SEVERITY = {verdict: rank for rank, verdict in enumerate(VERDICTS)}


class OngoingReassignment(NamedTuple):
    """A reassigned partition, and what was last worked out of it (None: nothing yet)."""

    partition: TopicPartition
    tracked: TrackedReassignment
    assessed: AssessedReassignment | None


def reassignment_line(
    tracker: ReassignmentTracker, reassignment: OngoingReassignment, now_ms: int
) -> dict[str, Any]:
    """Describe a reassignment as a line of ``caughtup reassignments --format json``."""
    partition, tracked, assessed = reassignment
    observation = tracked.latest
    known: dict[str, Any] = {"verdict": State.MEASURING}
    if assessed is not None:
        verdict, figures = assessed.verdict, assessed.figures
        known = {
            "verdict": verdict.verdict,
            "cause": verdict.cause,
            "evidence": dict(verdict.evidence) or None,
            "advice": verdict.advice,
            "bytes_remaining": figures.bytes_remaining,
            "offsets_remaining": figures.offsets_remaining,
            "rate_bytes_per_second": figures.rate_bytes,
            "rate_offsets_per_second": figures.rate_offsets,
            "eta_seconds": figures.eta.seconds
            if figures.eta is not None and isfinite(figures.eta.seconds)
            else None,
            "never": True if figures.eta is not None and isinf(figures.eta.seconds) else None,
        }
    line = {
        "kind": "partition",
        "at_ms": observation.as_of_ms,
        "topic": partition.topic,
        "partition": partition.partition,
        "phase": tracked.phase(tracker.cluster),
        "replicas": observation.replicas,
        "original": tracked.original,
        "target": controllers.target(observation),
        "adding": observation.adding,
        "removing": observation.removing,
        "isr": observation.isr,
        "leader": observation.leader,
        "leader_epoch": observation.leader_epoch,
        **known,
        "age_seconds": tracked.age_seconds(now_ms),
        "idle_seconds": tracked.idle_seconds(now_ms),
    }
    return {name: value for name, value in line.items() if value is not None}


def worst_first(
    tracker: ReassignmentTracker, watch: ReassignmentWatch
) -> list[OngoingReassignment]:
    """Return the reassignments, those that need somebody first, then the slowest ones."""

    def rank(reassignment: OngoingReassignment) -> tuple[float, float, TopicPartition]:
        partition, _, assessed = reassignment
        if assessed is None:
            return (-severity(State.MEASURING), 0.0, partition)
        eta = assessed.figures.eta
        waits = eta.seconds if eta is not None else 0.0
        return (-severity(assessed.verdict.verdict), -waits, partition)

    found = [
        OngoingReassignment(p, tracked, watch.find(p, tracked))
        for p, tracked in tracker.ongoing.items()
    ]
    return sorted(found, key=rank)


def severity(verdict: str) -> int:
    """Return how bad a verdict is: the more, the worse."""
    return _SEVERITY.get(verdict, len(_SEVERITY))


def reassignment_lines(
    tracker: ReassignmentTracker, watch: ReassignmentWatch, now_ms: int
) -> Iterator[dict[str, Any]]:
    """Yield a line for each reassignment, the worst first, for each throttle and what isn't known.

    Throttles are those that no reassignment of now needs.
    """
    for reassignment in worst_first(tracker, watch):
        yield reassignment_line(tracker, reassignment, now_ms)
    if tracker.cluster is None:
        return
    moving = {p: tracked.latest.replicas for p, tracked in tracker.ongoing.items()}
    for kind, name, what in unused_throttles(tracker.cluster, moving):
        yield {
            "kind": "throttle",
            "at_ms": tracker.cluster.as_of_ms,
            "on": kind,
            "name": name,
            "what": what,
            "advice": removal(kind, name),
        }
    for what in tracker.cluster.missing:
        yield {"kind": "missing", "at_ms": tracker.cluster.as_of_ms, "what": what}
