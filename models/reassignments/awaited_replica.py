"""What is found of one replica that isn't in sync yet, and what a finding takes into account.

*Over W* means: for longer than the replica may stand, which is a minute, what its throttles make
it wait, or three looks, whichever is longest. Times count up to the last look that knew the
replica, never beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.reassignments.throttles.shares import Throttle
from caughtup.models.reassignments.tracking.observation import (
    BrokerObservation,
    ClusterObservation,
    PartitionObservation,
)

#: What a verdict may hold as evidence; all of it can be written as JSON.
Evidence = dict[str, "int | float | str | bool | list[int] | list[str]"]

#: No verdict from fewer looks.
FEWEST_OBSERVATIONS = 3
#: How long a broker may be away, as long as a restart takes; a copy may stand, at least; a new
#: controller gets to settle. In ms.
AWAY_MS = 60_000
LEAST_ALLOWED_MS = 60_000
FAILOVER_MS = 60_000
#: How long a copy may stand of which it isn't known whether it is throttled, in ms.
UNKNOWN_ALLOWED_MS = 300_000
#: What is caught up joins the ISR within a second or two, if nothing is wrong. In ms.
JOIN_MS = 30_000
OBSERVATIONS_ALLOWED = 3
DEAD, STALLED, STARVED, STUCK = "dead", "stalled", "starved", "stuck"
DIVERGING, MOVING, TAIL = "diverging", "moving", "tail"
MEASURING, UNKNOWN = "measuring", "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is to be said of one replica: a state, its cause (None: none is needed), evidence."""

    replica: int
    state: str
    cause: str | None
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a finding takes into account besides the replica's own progress.

    ``throttles``: those on it, the tightest first. ``allowed_ms``: W. ``metadata``: whether a
    broker's metadata of the partition was had, so that the ISR is known.
    """

    observations: Sequence[PartitionObservation]
    cluster: ClusterObservation | None
    throttles: tuple[Throttle, ...]
    allowed_ms: int
    quorum_changed_ms: int | None
    metadata: bool

    @property
    def latest(self) -> PartitionObservation:
        """The last look."""
        return self.observations[-1]

    @property
    def brokers(self) -> Mapping[int, BrokerObservation] | None:
        """The registered brokers, None if unknown."""
        return None if self.cluster is None else self.cluster.brokers

    def overdue(self, since_ms: int, until_ms: int, allowed_ms: int) -> bool:
        """Tell whether something has lasted for too long; a change of controllers adds a grace.

        What was overdue before the change stays so.
        """
        due_ms = since_ms + allowed_ms
        changed_ms = self.quorum_changed_ms
        if changed_ms is not None and changed_ms < due_ms:
            due_ms = max(due_ms, changed_ms + FAILOVER_MS)
        return until_ms >= due_ms


def allowed_ms(throttles: Sequence[Throttle], observation_interval_ms: int, *, known: bool) -> int:
    """Give W: for how long a copy may stand, in ms. ``known``: whether all its throttles are."""
    patience = sum(throttle.patience_seconds for throttle in throttles)
    least_ms = LEAST_ALLOWED_MS if known else UNKNOWN_ALLOWED_MS
    return max(least_ms, round(patience * 1000), OBSERVATIONS_ALLOWED * observation_interval_ms)
