"""A replica that the controller waits for, all that its cause may rest on, and what is found.

*Over W* means: for longer than the replica may stand, which is a minute, what its throttles make
it wait, or three observations, whichever is longest. Times count up to the last observation that
knew the replica, never beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from caughtup.models.reassignments.controllers import missing_from_isr
from caughtup.models.reassignments.replica_progress import ReplicaProgress, replica_progress
from caughtup.models.reassignments.throttle_rates import (
    FETCH_BYTES,
    Throttle,
    ThrottleShares,
    throttles_known,
    throttles_on,
)
from caughtup.models.reassignments.tracker import TrackedReassignment
from caughtup.models.records.reassignment_lines import Evidence
from caughtup.models.records.reassignments import (
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
)

#: No verdict from fewer observations.
FEWEST_OBSERVATIONS = 3
#: How long a broker may be away, as long as a restart takes. What is caught up joins the ISR within
#: a second or two, if nothing is wrong. In ms.
AWAY_MS = 60_000
JOIN_MS = 30_000
#: A copy may stand for so long at least, a new controller gets so long to settle, in ms.
LEAST_ALLOWED_MS = 60_000
FAILOVER_MS = 60_000
#: How long a copy may stand of which it isn't known whether it is throttled, in ms.
UNKNOWN_ALLOWED_MS = 300_000
OBSERVATIONS_ALLOWED = 3
#: Rates are taken over this time (ms), or so many observations, or, behind a throttle, over the
#: time in which a copy gets so many fetches: soon up to date when the pace changes, and no shorter
#: than what chance does. Whether a copy falls back is decided over so many W.
RATE_MS = 45_000
RATE_OBSERVATIONS = 5
RATE_FETCHES = 60
LONG_WINDOWS = 3


class State(StrEnum):
    """How a replica fares that the required ISR lacks; the first four don't end by themselves."""

    DEAD = "dead"
    STALLED = "stalled"
    STARVED = "starved"
    STUCK = "stuck"
    DIVERGING = "diverging"
    MOVING = "moving"
    TAIL = "tail"
    MEASURING = "measuring"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """How one replica fares: a state, its cause (None: none is needed), evidence."""

    replica: int
    state: State
    cause: str | None
    evidence: Evidence

    @property
    def stands(self) -> bool:
        """Whether it goes on only if somebody does something."""
        return self.state in (State.DEAD, State.STALLED, State.STARVED, State.STUCK)


@dataclass(frozen=True, slots=True)
class AwaitedReplica:
    """A replica of the required ISR that isn't in it.

    ``throttles``: those on it, the tightest first. ``allowed_ms``: W.
    """

    broker: int
    progress: ReplicaProgress
    observations: Sequence[ReassignmentRecord]
    cluster: ClusterRecord | None
    throttles: tuple[Throttle, ...]
    allowed_ms: int
    quorum_changed_ms: int | None

    @property
    def latest(self) -> ReassignmentRecord:
        """The last observation of its partition."""
        return self.observations[-1]

    @property
    def brokers(self) -> Mapping[int, BrokerRecord] | None:
        """The registered brokers, None if unknown."""
        return None if self.cluster is None else self.cluster.brokers

    def overdue(self, since_ms: int, until_ms: int, allowed_ms: int) -> bool:
        """Return whether something has lasted for too long (``overdue``)."""
        return overdue(since_ms, until_ms, allowed_ms, self.quorum_changed_ms)


def overdue(since_ms: int, until_ms: int, allowed_ms: int, quorum_changed_ms: int | None) -> bool:
    """Return whether something has lasted for too long; a change of controllers adds a grace.

    What was overdue before the change stays so.
    """
    due_ms = since_ms + allowed_ms
    if quorum_changed_ms is not None and quorum_changed_ms < due_ms:
        due_ms = max(due_ms, quorum_changed_ms + FAILOVER_MS)
    return until_ms >= due_ms


def awaited_replicas(
    tracked: TrackedReassignment,
    cluster: ClusterRecord | None,
    quorum_changed_ms: int | None,
    shares: ThrottleShares,
    interval_ms: int,
) -> dict[int, AwaitedReplica]:
    """Return the replicas that the required ISR lacks, by broker, ascending.

    ``interval_ms``: how far apart the last observations are.
    """
    latest, replicas = tracked.latest, {}
    for broker in missing_from_isr(latest, cluster):
        throttles = throttles_on(latest.topic_partition, latest.leader, broker, cluster, shares)
        between = (broker,) if latest.leader is None else (broker, latest.leader)
        allowed = allowed_ms(throttles, interval_ms, known=throttles_known(cluster, between))
        progress = replica_progress(
            tracked.observations, broker, _rate_ms(throttles, interval_ms), LONG_WINDOWS * allowed
        )
        replicas[broker] = AwaitedReplica(
            broker, progress, tracked.observations, cluster, throttles, allowed, quorum_changed_ms
        )
    return replicas


def allowed_ms(throttles: Sequence[Throttle], interval_ms: int, *, known: bool) -> int:
    """Return W: for how long a copy may stand, in ms. ``known``: whether all its throttles are."""
    patience = sum(throttle.patience_seconds for throttle in throttles)
    least_ms = LEAST_ALLOWED_MS if known else UNKNOWN_ALLOWED_MS
    return max(least_ms, round(patience * 1000), OBSERVATIONS_ALLOWED * interval_ms)


def _rate_ms(throttles: Sequence[Throttle], interval_ms: int) -> int:
    """Return over which time a copy's rates are taken, in ms."""
    fetches = [RATE_FETCHES * one.copies * FETCH_BYTES / max(1, one.rate) for one in throttles]
    shortest = 2 * RATE_MS if throttles else RATE_MS
    return max(shortest, RATE_OBSERVATIONS * interval_ms, round(1000 * max(fetches, default=0.0)))
