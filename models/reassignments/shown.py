"""A reassignment as it is shown: its last observation, verdict and figures."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, isinf

from caughtup.models.reassignments import controllers
from caughtup.models.reassignments.figures import ReassignmentFigures
from caughtup.models.reassignments.tracker import TrackedReassignment
from caughtup.models.reassignments.verdict import ReassignmentVerdict
from caughtup.models.records.fields import MOST_SECONDS, changed
from caughtup.models.records.reassignment_lines import Reassignment, ReplicaCopy, Role
from caughtup.models.records.reassignments import ClusterRecord, ReassignmentRecord


def observed(
    tracked: TrackedReassignment, cluster: ClusterRecord | None, now_ms: int
) -> Reassignment:
    """Return a reassignment as last observed, with its ages at ``now_ms`` and without verdict."""
    latest = tracked.latest
    return Reassignment(
        at_ms=latest.as_of_ms,
        topic=latest.topic,
        partition=latest.partition,
        phase=tracked.phase(cluster),
        replicas=latest.replicas,
        original=tracked.original,
        target=controllers.target(latest),
        adding=latest.adding,
        removing=latest.removing,
        isr=latest.isr,
        leader=latest.leader,
        leader_epoch=latest.leader_epoch,
        verdict="measuring",
        age_seconds=tracked.age_seconds(now_ms),
        idle_seconds=tracked.idle_seconds(now_ms),
    )


def judged(
    row: Reassignment, verdict: ReassignmentVerdict, figures: ReassignmentFigures
) -> Reassignment:
    """Return a reassignment with its verdict and the figures on which that rests."""
    seconds = None if figures.eta is None else figures.eta.seconds
    return changed(
        row,
        verdict=verdict.verdict,
        cause=verdict.cause,
        evidence=verdict.evidence or None,
        advice=verdict.advice,
        bytes_remaining=figures.bytes_remaining,
        offsets_remaining=figures.offsets_remaining,
        rate_bytes_per_second=figures.rate_bytes,
        rate_offsets_per_second=figures.rate_offsets,
        eta_seconds=seconds if seconds is not None and isfinite(seconds) else None,
        never=True if seconds is not None and isinf(seconds) else None,
    )


def recorded(record: ReassignmentRecord, row: Reassignment | None) -> ReassignmentRecord:
    """Return the record with the last verdict and figures of its reassignment, None for none.

    Values beyond a record's bounds are left out: a rate or a time beyond ``MOST_SECONDS``.
    """
    if row is None:
        return changed(
            record,
            verdict=None,
            cause=None,
            rate_bytes_per_second=None,
            eta_seconds=None,
            never=False,
        )
    rate, eta = row.rate_bytes_per_second, row.eta
    in_time = eta is not None and 0 <= eta <= MOST_SECONDS
    return changed(
        record,
        verdict=row.verdict,
        cause=row.cause,
        rate_bytes_per_second=float(rate)
        if rate is not None and abs(rate) <= MOST_SECONDS
        else None,
        eta_seconds=eta if in_time else None,
        never=eta is not None and eta > MOST_SECONDS,
    )


def copies(tracked: TrackedReassignment) -> Iterator[ReplicaCopy]:
    """Yield each replica's state: those of the target first, in its order."""
    latest = tracked.latest
    target = controllers.target(latest)
    for broker in dict.fromkeys((*target, *latest.replicas)):
        in_sync = broker in latest.isr
        role: Role = "stays" if broker in target else "removed"
        yield ReplicaCopy(
            broker=broker,
            role="added" if broker in latest.adding else role,
            in_sync=in_sync,
            away=broker in latest.offline,
            missing=broker in latest.not_hosted,
            unanswered=broker in latest.unanswered,
            log_end=latest.log_ends.get(broker),
            share=1.0 if in_sync else _share(tracked, broker),
        )


def _share(tracked: TrackedReassignment, broker: int) -> float | None:
    """Return the part of the leader's log that a copy has (0 to 1), None if unknown.

    It is by bytes, else by offsets since the first observation.
    """
    latest = tracked.latest
    if latest.leader is None:
        return None
    whole, part = latest.sizes.get(latest.leader), latest.sizes.get(broker)
    if whole and part is not None:
        return min(1.0, part / whole)
    end, own = latest.leader_end, latest.log_ends.get(broker)
    if end is None or own is None:
        return None
    began = min(tracked.first.log_ends.get(broker, 0), own)
    return 1.0 if own >= end else (own - began) / (end - began)
