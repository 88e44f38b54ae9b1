"""When copies will be done: per replica from its own pace, per partition by the last of them.

A copy's pace counts what its leader gets meanwhile, since it is the distance whose trend is taken.
A throttle that was lowered just now shows in the trend only later, so no time to go is shorter
than the throttle allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from caughtup.models.histories.offset_sums import SumPoint
from caughtup.models.histories.trend import Eta, time_to_go
from caughtup.models.reassignments.replica_progress import ReplicaProgress
from caughtup.models.reassignments.throttles.shares import QUOTA_SECONDS, RESPONSE_BYTES, Throttle

#: Points that a pace needs before a time to go is told.
FEWEST_STEPS = 2
NEVER = Eta(math.inf, math.inf, math.inf)
THERE = Eta(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """How far one replica is that isn't in sync and has to be; None = unknown.

    ``rate_offsets`` and ``rate_bytes``: what it copies in a second. ``eta``: from now on.
    ``stood_seconds``: for how long it has stood with something to copy.
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
    """How far a partition's movement is; None = unknown.

    ``offsets_remaining`` and ``rate_offsets`` are those of the replica that is furthest behind;
    ``bytes_remaining`` and ``rate_bytes`` add up what all have to copy and do copy in a second.
    ``eta``: when the last of them is there, infinite = never as things are. ``replicas``: by
    broker, those that aren't in sync and have to be. ``age_seconds`` since the movement was first
    seen, ``idle_seconds`` since it last got anywhere.
    """

    offsets_remaining: int | None
    bytes_remaining: int | None
    rate_offsets: float | None
    rate_bytes: float | None
    eta: Eta | None
    replicas: Mapping[int, ReplicaFigures]
    age_seconds: float
    idle_seconds: float


def replica_eta(
    progress: ReplicaProgress, throttles: Sequence[Throttle], factor: float, now_ms: int
) -> Eta | None:
    """Tell when a replica has what its leader has, from now on; None if that can't be told yet.

    ``factor``: how much sooner it is there than at its own pace (``shared_copies.sooner``).
    """
    if progress.behind is None or not progress.behind_exact or progress.seen_ms is None:
        return None
    if progress.behind == 0:
        return THERE
    closing = progress.closing
    if closing is None or closing.steps < FEWEST_STEPS or not progress.moved:
        return None
    behind = SumPoint(progress.seen_ms, progress.behind, progress.behind)
    eta = time_to_go(behind, closing).after((now_ms - progress.seen_ms) / 1000)
    least = _least_seconds(progress.bytes_behind, throttles)
    return Eta(max(eta.seconds * factor, least), eta.low * factor, max(eta.high, least))


def replica_figures(progress: ReplicaProgress, eta: Eta | None) -> ReplicaFigures:
    """Gather the figures of one replica."""
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


def reassignment_figures(
    replicas: Mapping[int, ReplicaFigures], *, ends: bool, age_seconds: float, idle_seconds: float
) -> ReassignmentFigures:
    """Put the figures of a partition's replicas together. ``ends``: whether it ever will."""
    furthest = max(
        (one for one in replicas.values() if one.offsets_remaining is not None),
        key=lambda one: one.offsets_remaining or 0,
        default=None,
    )
    known = all(one.offsets_remaining is not None for one in replicas.values())
    return ReassignmentFigures(
        offsets_remaining=(furthest.offsets_remaining if furthest else 0) if known else None,
        bytes_remaining=_added(one.bytes_remaining for one in replicas.values()),
        rate_offsets=None if furthest is None else furthest.rate_offsets,
        rate_bytes=_added(one.rate_bytes for one in replicas.values()),
        eta=last_eta(one.eta for one in replicas.values()) if ends else NEVER,
        replicas=replicas,
        age_seconds=age_seconds,
        idle_seconds=idle_seconds,
    )


def last_eta(etas: Iterable[Eta | None]) -> Eta | None:
    """Tell when the last of some copies is there; None while one of them can't be told."""
    last = THERE
    unknown = False
    for eta in etas:
        if eta is None:
            unknown = True
            continue
        last = Eta(*(max(pair) for pair in zip(last, eta, strict=True)))
    return None if unknown and math.isfinite(last.seconds) else last


def _least_seconds(bytes_behind: int | None, throttles: Sequence[Throttle]) -> float:
    """Tell how long the throttles make a copy take at least; a low one is exceeded in practice."""
    if bytes_behind is None:
        return 0.0
    fastest = [max(throttle.rate, RESPONSE_BYTES / QUOTA_SECONDS) for throttle in throttles]
    return max((bytes_behind / rate for rate in fastest), default=0.0)


_Number = TypeVar("_Number", int, float)


def _added(values: Iterable[_Number | None]) -> _Number | None:
    """Add values up; None if one of them is unknown."""
    total: _Number | None = None
    for value in values:
        if value is None:
            return None
        total = value if total is None else total + value
    return total
