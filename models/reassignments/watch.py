"""How every reassignment fares, worked out one by one and kept until the next time.

A verdict rests on a history of observations, which takes longer than a scrape may; so a scrape, the
page and the events read what was last worked out.
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
from caughtup.models.reassignments.tracking.tracked import TrackedReassignment
from caughtup.models.reassignments.tracking.tracker import ReassignmentTracker
from caughtup.models.reassignments.verdict import ReassignmentVerdict, assess


class AssessedReassignment(NamedTuple):
    """What was worked out of a reassignment."""

    verdict: ReassignmentVerdict
    figures: ReassignmentFigures
    tracked: TrackedReassignment


def shares_of(tracker: ReassignmentTracker) -> Callable[[], ThrottleShares]:
    """Return what works out who gets which part of the throttles, as of now.

    It holds on to nothing that changes: another thread may call it while observations come.
    """
    ongoing, cluster = list(tracker.ongoing.values()), tracker.cluster
    return lambda: throttle_shares(ongoing, cluster)


class ReassignmentWatch:
    """The last assessment of each reassignment, and of the throttles around them."""

    def __init__(self, faults: Faults | None = None) -> None:
        self._faults = faults or Faults()
        self._assessed: dict[TopicPartition, AssessedReassignment] = {}
        self._throttles = ThrottleWatch()

    def assess(
        self,
        tracker: ReassignmentTracker,
        now_ms: int,
        budget_seconds: float | None = None,
        shares: ThrottleShares | None = None,
    ) -> Iterator[TopicPartition]:
        """Work out every reassignment anew, and yield each partition when it is done.

        ``budget_seconds``: how long one may take from now on before it is slow; None: any time.
        ``shares`` are those of ``shares_of`` if the caller has them, which take longest. The
        caller may let others have their turn between two; what they change meanwhile counts or
        doesn't. One that can't be worked out is left without a verdict.
        """
        with self._faults.isolated("reassignments", "throttles", now_ms):
            self._observe_throttles(tracker)
            if shares is None:
                shares = shares_of(tracker)()
        for partition in self._assessed.keys() - tracker.ongoing.keys():
            del self._assessed[partition]
        for partition in sorted(tracker.ongoing):
            tracked = tracker.ongoing.get(partition)
            if tracked is None:
                self._assessed.pop(partition, None)
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
                self._assessed[partition] = AssessedReassignment(verdict, figures, tracked)
            yield partition

    def _forget(self, partition: TopicPartition) -> Callable[[Exception], object]:
        return lambda _: self._assessed.pop(partition, None)

    def find(
        self, partition: TopicPartition, tracked: TrackedReassignment
    ) -> AssessedReassignment | None:
        """Return what was last worked out of a reassignment; None of one that has just begun."""
        assessed = self._assessed.get(partition)
        return assessed if assessed is not None and assessed.tracked is tracked else None

    def orphaned(self, now_ms: int) -> tuple[OrphanedThrottle, ...]:
        """Return the throttles that no reassignment has needed for long."""
        return self._throttles.orphaned(now_ms)

    def _observe_throttles(self, tracker: ReassignmentTracker) -> None:
        if tracker.cluster is not None:
            ongoing = {
                partition: tracked.latest.replicas for partition, tracked in tracker.ongoing.items()
            }
            self._throttles.apply(tracker.cluster, ongoing)
