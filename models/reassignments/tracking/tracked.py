"""One reassignment over time: its observations, since when, and when it last got anywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from caughtup.models.histories.thinning import kept_points
from caughtup.models.reassignments.tracking import controllers
from caughtup.models.reassignments.tracking.observation import (
    ClusterObservation,
    PartitionObservation,
)

#: How long observations of a reassignment are kept, in ms.
HISTORY_MS = 15 * 60_000
#: How many of the last joins are kept of a reassignment.
JOINS = 100
_SHARED = ("replicas", "adding", "removing", "isr", "log_ends", "sizes")


@dataclass(slots=True)
class TrackedReassignment:
    """A reassignment over time.

    ``first``: its first observation. ``observations``: the last ones, oldest first; older ones are
    sparser. ``original``: the replicas that there were before it, in the order known of them.
    ``isr`` and ``log_ends``: the last ones that are known. ``isr_joins``: when which replica of
    the target came into the ISR; ``joined`` counts them all. Times in ms: ``since_ms`` when it
    was first observed, ``progressed_ms`` when it last got anywhere, ``unlisted_ms`` since when the
    controller no longer lists it (None: it does) though its end isn't certain.
    """

    first: PartitionObservation
    observations: list[PartitionObservation]
    since_ms: int
    progressed_ms: int
    original: tuple[int, ...]
    isr: tuple[int, ...]
    log_ends: dict[int, int]
    isr_joins: tuple[tuple[int, int], ...] = ()
    joined: int = 0
    unlisted_ms: int | None = None

    @property
    def latest(self) -> PartitionObservation:
        """Its last observation."""
        return self.observations[-1]

    def age_seconds(self, now_ms: int) -> float:
        """Return how long ago it was first seen."""
        return max(0, now_ms - self.since_ms) / 1000

    def idle_seconds(self, now_ms: int) -> float:
        """Return how long ago it last got anywhere."""
        return max(0, now_ms - self.progressed_ms) / 1000

    def phase(self, cluster: ClusterObservation | None) -> str:
        """Return the phase: ``controllers.phase``, or ``propagating`` once it isn't listed."""
        if self.unlisted_ms is not None:
            return "propagating"
        return controllers.phase(self.latest, cluster)

    def add(self, observation: PartitionObservation, cluster: ClusterObservation | None) -> None:
        """Add another observation.

        Progress is another target, a required replica that came into the ISR, or one out of it
        that copied. An observation older than those before it means that the clock was set back.
        """
        before = self.latest
        joined = sorted(set(observation.isr) - set(self.isr)) if self.isr else []
        waited_for = controllers.missing_from_isr(before, cluster)
        if (
            _replica_sets(before) != _replica_sets(observation)
            or not controllers.required_isr(observation, cluster).isdisjoint(joined)
            or any(self._copied(observation, replica) for replica in waited_for)
        ):
            self.progressed_ms = observation.as_of_ms
        if observation.as_of_ms <= before.as_of_ms:
            self.observations = [
                one for one in self.observations if one.as_of_ms < observation.as_of_ms
            ]
            self.since_ms = min(self.since_ms, observation.as_of_ms)
            self.progressed_ms = min(self.progressed_ms, observation.as_of_ms)
        self.observations.append(_sharing(before, observation))
        lasting = controllers.target(observation)
        joins = tuple((observation.as_of_ms, broker) for broker in joined if broker in lasting)
        self.isr_joins = (*self.isr_joins, *joins)[-JOINS:]
        self.joined += len(joins)
        self.isr = observation.isr or self.isr
        self.log_ends.update(observation.log_ends)
        self.unlisted_ms = None

    def thin(self, most: int) -> None:
        """Keep no more than so many observations, none too old; the newest half all stay."""
        observations = self.observations
        if (
            len(observations) <= most
            and observations[-1].as_of_ms - observations[0].as_of_ms <= HISTORY_MS
        ):
            return
        times = [observation.as_of_ms for observation in observations]
        # An eighth fewer than there may be: it is then not done again each time.
        dense, sparse = most // 2, most // 2 - most // 8
        self.observations = [
            observations[index] for index in kept_points(times, dense, sparse, HISTORY_MS)
        ]

    def _copied(self, observation: PartitionObservation, replica: int) -> bool:
        before, now = self.log_ends.get(replica), observation.log_ends.get(replica)
        return before is not None and now is not None and now > before


def _replica_sets(observation: PartitionObservation) -> tuple[tuple[int, ...], ...]:
    return observation.replicas, observation.adding, observation.removing


def _sharing(
    before: PartitionObservation, observation: PartitionObservation
) -> PartitionObservation:
    """Return the observation with what the one before has alike, which saves memory."""
    alike = {
        name: getattr(before, name)
        for name in _SHARED
        if getattr(before, name) == getattr(observation, name)
    }
    return replace(observation, **alike)
