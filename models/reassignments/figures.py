"""The figures of a reassignment: what remains, rates and ETA, per replica and per partition.

A replica's pace is the trend of its distance from the leader, so it includes the leader's growth.
A partition's ETA is that of its last replica. A throttle that was lowered shows in the trend only
later, so no ETA is shorter than the throttle allows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from caughtup.models.histories.offset_sums import SumPoint
from caughtup.models.histories.trend import Eta, time_to_go
from caughtup.models.reassignments.awaited_replica import AwaitedReplica
from caughtup.models.reassignments.throttle_rates import (
    QUOTA_SECONDS,
    RESPONSE_BYTES,
    Throttle,
    ThrottleShares,
)
from caughtup.models.reassignments.tracker import TrackedReassignment

#: The fewest points of a trend from which an ETA is computed.
FEWEST_TREND_POINTS = 2
NEVER = Eta(math.inf, math.inf, math.inf)
THERE = Eta(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """The figures of one required replica that is out of the ISR; None means unknown.

    ``rate_offsets`` and ``rate_bytes`` are what it copies in a second. ``eta`` counts from now.
    ``stood_seconds`` is how long it has stood with something to copy.
    """

    log_end: int | None
    offsets_remaining: int | None
    bytes_remaining: int | None
    rate_offsets: float | None
    rate_bytes: float | None
    eta: Eta | None
    stood_seconds: float


@dataclass(frozen=True, slots=True)
class ReassignmentFigures:
    """The figures of a reassignment; None means unknown.

    ``offsets_remaining`` and ``rate_offsets`` are those of the replica that is furthest behind;
    ``bytes_remaining`` and ``rate_bytes`` (bytes a second) are sums over all replicas. ``eta`` is
    that of the last replica; infinite means never at the current rates. ``replicas`` has by
    broker the required replicas out of the ISR. ``age_seconds`` counts from the first observation,
    ``idle_seconds`` from the last progress.
    """

    offsets_remaining: int | None
    bytes_remaining: int | None
    rate_offsets: float | None
    rate_bytes: float | None
    eta: Eta | None
    replicas: Mapping[int, ReplicaFigures]
    age_seconds: float
    idle_seconds: float


def reassignment_figures(
    tracked: TrackedReassignment,
    replicas: Mapping[int, AwaitedReplica],
    standing: Collection[int],
    shares: ThrottleShares,
    now_ms: int,
    *,
    ends: bool,
    known: bool,
) -> ReassignmentFigures:
    """Return the figures of a partition's reassignment at ``now_ms``.

    ``replicas`` are those that the required ISR lacks, ``standing`` those of them that will never
    catch up at the current rates. ``ends`` is whether the reassignment will complete; ``known`` is
    whether nothing remains if no replica is lacking.
    """
    of_each = {
        broker: _replica_figures(
            replica, NEVER if broker in standing else _replica_eta(replica, shares, now_ms)
        )
        for broker, replica in replicas.items()
    }
    known_of = [one for one in of_each.values() if one.offsets_remaining is not None]
    furthest = max(known_of, key=lambda one: one.offsets_remaining or 0, default=None)
    remaining = 0 if furthest is None else furthest.offsets_remaining
    figures = ReassignmentFigures(
        offsets_remaining=None if len(known_of) < len(of_each) else remaining,
        bytes_remaining=_added(one.bytes_remaining for one in of_each.values()),
        rate_offsets=None if furthest is None else furthest.rate_offsets,
        rate_bytes=_added(one.rate_bytes for one in of_each.values()),
        eta=_last_eta(of_each.values()) if ends else NEVER,
        replicas=of_each,
        age_seconds=tracked.age_seconds(now_ms),
        idle_seconds=tracked.idle_seconds(now_ms),
    )
    return figures if known or of_each else replace(figures, offsets_remaining=None, eta=None)


def _replica_figures(replica: AwaitedReplica, eta: Eta | None) -> ReplicaFigures:
    progress = replica.progress
    stood = 0.0
    if progress.stands_since_ms is not None and progress.seen_ms is not None:
        stood = max(0, progress.seen_ms - progress.stands_since_ms) / 1000
    return ReplicaFigures(
        log_end=progress.log_end,
        offsets_remaining=progress.behind if progress.behind_exact else None,
        bytes_remaining=progress.bytes_behind,
        rate_offsets=progress.rate,
        rate_bytes=progress.rate_bytes,
        eta=eta,
        stood_seconds=stood,
    )


def _replica_eta(replica: AwaitedReplica, shares: ThrottleShares, now_ms: int) -> Eta | None:
    """Return the time until a replica is caught up, from now on; None if it is unknown yet."""
    progress = replica.progress
    if progress.behind is None or not progress.behind_exact or progress.seen_ms is None:
        return None
    if progress.behind == 0:
        return THERE
    closing = progress.closing
    if closing is None or closing.steps < FEWEST_TREND_POINTS or not progress.moved:
        return None
    behind = SumPoint(progress.seen_ms, progress.behind, progress.behind)
    eta = time_to_go(behind, closing).after((now_ms - progress.seen_ms) / 1000)
    least = _least_seconds(progress.bytes_behind, replica.throttles)
    factor = shares.time_factors.get((replica.latest.topic_partition, replica.broker), 1.0)
    return Eta(max(eta.seconds * factor, least), eta.low * factor, max(eta.high, least))


def _last_eta(replicas: Collection[ReplicaFigures]) -> Eta | None:
    """Return the ETA of the last replica, None while that of one of them is unknown."""
    known = [one.eta for one in replicas if one.eta is not None]
    last = Eta(*(max(times) for times in zip(THERE, *known, strict=True)))
    return None if len(known) < len(replicas) and math.isfinite(last.seconds) else last


def _least_seconds(bytes_behind: int | None, throttles: Sequence[Throttle]) -> float:
    """Return the least seconds that throttles allow; in practice a low throttle is exceeded."""
    if bytes_behind is None:
        return 0.0
    fastest = [max(throttle.rate, RESPONSE_BYTES / QUOTA_SECONDS) for throttle in throttles]
    return max((bytes_behind / rate for rate in fastest), default=0.0)


_Number = TypeVar("_Number", int, float)


def _added(values: Iterable[_Number | None]) -> _Number | None:
    """Return the sum; None if a value is unknown."""
    total: _Number | None = None
    for value in values:
        if value is None:
            return None
        total = value if total is None else total + value
    return total
