"""The last verdict on each reassignment, assessed one by one.

A verdict rests on a history of observations and takes longer than a scrape may, so a scrape, the
page and the events read the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from caughtup.models.faults import Faults
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.advice import in_words
from caughtup.models.reassignments.orphaned_throttles import (
    OrphanedThrottle,
    ThrottleWatch,
    removal,
    unused_throttles,
)
from caughtup.models.reassignments.shown import copies, judged, observed
from caughtup.models.reassignments.throttle_rates import ThrottleShares
from caughtup.models.reassignments.throttle_shares import throttle_shares
from caughtup.models.reassignments.tracker import ReassignmentTracker, TrackedReassignment
from caughtup.models.reassignments.verdict import assess
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignment_lines import (
    Line,
    MissingLine,
    Reassignment,
    ThrottleLine,
)
from caughtup.models.verdicts import REASSIGNMENTS

#: The fields that are as last assessed; all others are as last observed.
_ASSESSED = (
    *("verdict", "cause", "evidence", "advice", "bytes_remaining", "offsets_remaining"),
    *("rate_bytes_per_second", "rate_offsets_per_second", "eta_seconds", "never"),
)


def shares_of(tracker: ReassignmentTracker) -> Callable[[], ThrottleShares]:
    """Return a function that computes the shares of the throttles as of now.

    It refers to no state that changes, so another thread may call it while observations come.
    """
    ongoing, cluster = list(tracker.ongoing.values()), tracker.cluster
    return lambda: throttle_shares(ongoing, cluster)


class ReassignmentWatch:
    """The last assessment of each reassignment, and of the throttles around them."""

    def __init__(self, faults: Faults | None = None) -> None:
        self._faults = faults or Faults()
        self._assessed: dict[TopicPartition, tuple[TrackedReassignment, Reassignment]] = {}
        self._throttles = ThrottleWatch()

    def assess(
        self,
        tracker: ReassignmentTracker,
        now_ms: int,
        budget_seconds: float | None = None,
        shares: ThrottleShares | None = None,
    ) -> Iterator[TopicPartition]:
        """Assess every reassignment, and yield each partition when it is done.

        A reassignment that takes more than ``budget_seconds`` from now on is slow; None sets no
        budget. ``shares`` are those of ``shares_of``, which take longest, if the caller has them.
        Other tasks may run between two partitions; their changes may or may not count. A
        reassignment whose assessment raises has no verdict.
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
                row = observed(tracked, tracker.cluster, now_ms)
                self._assessed[partition] = tracked, judged(row, verdict, figures)
            yield partition

    def _forget(self, partition: TopicPartition) -> Callable[[Exception], object]:
        return lambda _: self._assessed.pop(partition, None)

    def find(self, partition: TopicPartition, tracked: TrackedReassignment) -> Reassignment | None:
        """Return a reassignment as last assessed, None if it was not assessed yet."""
        of, assessed = self._assessed.get(partition, (None, None))
        return assessed if of is tracked else None

    def row(
        self, tracker: ReassignmentTracker, partition: TopicPartition, now_ms: int
    ) -> Reassignment:
        """Return an ongoing reassignment as last observed, with its last verdict and figures."""
        tracked = tracker.ongoing[partition]
        row, assessed = observed(tracked, tracker.cluster, now_ms), self.find(partition, tracked)
        if assessed is None:
            return row
        return changed(row, **{name: getattr(assessed, name) for name in _ASSESSED})

    def detailed(
        self, tracker: ReassignmentTracker, partition: TopicPartition, now_ms: int
    ) -> Reassignment:
        """Return the same with its evidence in words and every replica."""
        tracked, row = tracker.ongoing[partition], self.row(tracker, partition, now_ms)
        row = changed(row, copies=tuple(copies(tracked)))
        if self.find(partition, tracked) is None:
            return row
        return changed(row, why=in_words(row.evidence or {}), never=bool(row.never))

    def worst_first(self, tracker: ReassignmentTracker) -> list[TopicPartition]:
        """Return the partitions in movement: the worst verdicts first, then the longest ETAs."""

        def rank(partition: TopicPartition) -> tuple[float, float, TopicPartition]:
            assessed = self.find(partition, tracker.ongoing[partition])
            if assessed is None:
                return (-REASSIGNMENTS.severity(None), 0.0, partition)
            return (-REASSIGNMENTS.severity(assessed.verdict), -(assessed.eta or 0.0), partition)

        return sorted(tracker.ongoing, key=rank)

    def lines(self, tracker: ReassignmentTracker, now_ms: int) -> Iterator[Line]:
        """Yield the reassignments, worst first, the unneeded throttles, and what is unknown."""
        for partition in self.worst_first(tracker):
            yield self.row(tracker, partition, now_ms)
        if tracker.cluster is None:
            return
        at_ms = tracker.cluster.as_of_ms
        for kind, name, what in unused_throttles(tracker.cluster, _replicas(tracker)):
            yield ThrottleLine(at_ms, kind, name, what, removal(kind, name))
        for what in tracker.cluster.missing:
            yield MissingLine(at_ms, what)

    def verdict_counts(self, tracker: ReassignmentTracker) -> dict[str, int]:
        """Return the number of reassignments by verdict, the worst first."""
        found = (self.find(one, tracked) for one, tracked in tracker.ongoing.items())
        counts = Counter("measuring" if one is None else one.verdict for one in found)
        return {word: counts[word] for word in reversed(REASSIGNMENTS.words) if counts[word]}

    def orphaned(self, now_ms: int) -> tuple[OrphanedThrottle, ...]:
        """Return the throttles that are orphaned at ``now_ms``."""
        return self._throttles.orphaned(now_ms)

    def _observe_throttles(self, tracker: ReassignmentTracker) -> None:
        if tracker.cluster is not None:
            self._throttles.apply(tracker.cluster, _replicas(tracker))


def _replicas(tracker: ReassignmentTracker) -> dict[TopicPartition, tuple[int, ...]]:
    return {partition: tracked.latest.replicas for partition, tracked in tracker.ongoing.items()}
