"""How every partition in movement fares, worked out one by one and kept until the next time.

A verdict rests on a history of looks, which takes longer than a scrape may; so a scrape, the page
and the movements' events read what was last worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from caughtup.models.faults.isolation import Faults
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.figures import ReassignmentFigures
from caughtup.models.reassignments.throttles.orphaned import OrphanedThrottle, ThrottleWatch
from caughtup.models.reassignments.throttles.rates import ThrottleShares
from caughtup.models.reassignments.throttles.shares import throttle_shares
from caughtup.models.reassignments.tracking.tracker import ReassignmentTracker, TrackedReassignment
from caughtup.models.reassignments.verdict import ReassignmentVerdict, assess


class AssessedReassignment(NamedTuple):
    """What was worked out of a partition in movement."""

    verdict: ReassignmentVerdict
    figures: ReassignmentFigures
    tracked: TrackedReassignment


def shares_of(tracker: ReassignmentTracker) -> Callable[[], ThrottleShares]:
    """Give what works out who gets which part of the throttles, as of now.

    It holds on to nothing that changes: another thread may call it while looks come.
    """
    moving, cluster = list(tracker.ongoing.values()), tracker.cluster
    return lambda: throttle_shares(moving, cluster)


class ReassignmentWatch:
    """The last assessment of each partition in movement, and of the throttles around them."""

    def __init__(self, faults: Faults | None = None) -> None:
        self._faults = faults or Faults()
        self._movements: dict[TopicPartition, AssessedReassignment] = {}
        self._throttles = ThrottleWatch()

    def assess(
        self,
        tracker: ReassignmentTracker,
        now_ms: int,
        budget_seconds: float | None = None,
        shares: ThrottleShares | None = None,
    ) -> Iterator[TopicPartition]:
        """Work out every partition in movement anew, giving each when it is done.

        ``budget_seconds``: how long one may take from now on before it is slow; None: any time.
        ``shares`` are those of ``shares_of`` if the caller has them, which take longest. The
        caller may let others have their turn between two; what they change meanwhile counts or
        doesn't. One that can't be worked out is left without a verdict.
        """
        with self._faults.isolated("reassignments", "throttles", now_ms):
            self._observe_throttles(tracker)
            if shares is None:
                shares = shares_of(tracker)()
        for partition in self._movements.keys() - tracker.ongoing.keys():
            del self._movements[partition]
        for partition in sorted(tracker.ongoing):
            tracked = tracker.ongoing.get(partition)
            if tracked is None:
                self._movements.pop(partition, None)
                continue
            with self._faults.isolated(
                "reassignments", str(partition), now_ms, self._forget(partition)
            ):
                verdict, figures = assess(
                    tracked,
                    tracker.cluster,
                    tracker.quorum_changed_ms,
                    now_ms,
                    budget_seconds,
                    shares,
                )
                self._movements[partition] = AssessedReassignment(verdict, figures, tracked)
            yield partition

    def _forget(self, partition: TopicPartition) -> Callable[[Exception], object]:
        return lambda _: self._movements.pop(partition, None)

    def find(
        self, partition: TopicPartition, tracked: TrackedReassignment
    ) -> AssessedReassignment | None:
        """Give what was last worked out of a movement; None of one that has just begun."""
        assessed = self._movements.get(partition)
        return assessed if assessed is not None and assessed.tracked is tracked else None

    def orphaned(self, now_ms: int) -> tuple[OrphanedThrottle, ...]:
        """List the throttles that no movement has needed for long."""
        return self._throttles.orphaned(now_ms)

    def _observe_throttles(self, tracker: ReassignmentTracker) -> None:
        if tracker.cluster is not None:
            moving = {
                partition: tracked.latest.replicas for partition, tracked in tracker.ongoing.items()
            }
            self._throttles.apply(tracker.cluster, moving)
