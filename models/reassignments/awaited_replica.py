"""A replica that the controller waits for, with the input of its finding, and the finding.

W is how long a replica may stand: a minute, the time for which its throttles make it wait, or
three observations, whichever is longest. Times count up to the last observation that has the
replica's log end, never beyond it.
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

#: The fewest observations for a verdict.
FEWEST_OBSERVATIONS = 3
#: How long a broker may be away, enough for a restart, and how long a replica that is caught up
#: may stay out of the ISR, which it normally joins within a second or two. In ms.
AWAY_MS = 60_000
JOIN_MS = 30_000
#: The shortest W, and how long a new controller gets to settle. In ms.
LEAST_ALLOWED_MS = 60_000
FAILOVER_MS = 60_000
#: The shortest W of a copy whose throttles are unknown, in ms.
UNKNOWN_ALLOWED_MS = 300_000
OBSERVATIONS_ALLOWED = 3
#: Rates are taken over RATE_MS, RATE_OBSERVATIONS observations, or, behind a throttle, the time of
#: RATE_FETCHES fetches: short enough to follow a change of pace, and longer than chance
#: variations. Whether a copy falls back is decided over LONG_WINDOWS times W.
RATE_MS = 45_000
RATE_OBSERVATIONS = 5
RATE_FETCHES = 60
LONG_WINDOWS = 3


class ReplicaState(StrEnum):
    """The state of a replica that the required ISR lacks; the first four do not end by themselves."""

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
class ReplicaFinding:
    """What a rule found of a replica: a state, its cause (None: none is needed), evidence."""

    replica: int
    state: ReplicaState
    cause: str | None
    evidence: Evidence

    @property
    def needs_operator(self) -> bool:
        """Whether the copy goes on only after an operator acts."""
        return self.state in (
            ReplicaState.DEAD,
            ReplicaState.STALLED,
            ReplicaState.STARVED,
            ReplicaState.STUCK,
        )


@dataclass(frozen=True, slots=True)
class AwaitedReplica:
    """A required replica that is out of the ISR.

    ``throttles`` are those on its copy, the tightest first; ``allowed_ms`` is W.
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
        """Return ``overdue`` with the time at which the controllers changed."""
        return overdue(since_ms, until_ms, allowed_ms, self.quorum_changed_ms)


def overdue(since_ms: int, until_ms: int, allowed_ms: int, quorum_changed_ms: int | None) -> bool:
    """Return whether a condition lasted for ``allowed_ms``, or longer after a change of controllers.

    What was overdue before the change stays overdue.
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

    ``interval_ms`` is the time between the last observations.
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
    """Return W, how long a copy may stand, in ms; ``known`` is whether all its throttles are."""
    patience = sum(throttle.patience_seconds for throttle in throttles)
    least_ms = LEAST_ALLOWED_MS if known else UNKNOWN_ALLOWED_MS
    return max(least_ms, round(patience * 1000), OBSERVATIONS_ALLOWED * interval_ms)


def _rate_ms(throttles: Sequence[Throttle], interval_ms: int) -> int:
    """Return the time over which a copy's rates are taken, in ms."""
    fetches = [RATE_FETCHES * one.copies * FETCH_BYTES / max(1, one.rate) for one in throttles]
    shortest = 2 * RATE_MS if throttles else RATE_MS
    return max(shortest, RATE_OBSERVATIONS * interval_ms, round(1000 * max(fetches, default=0.0)))
