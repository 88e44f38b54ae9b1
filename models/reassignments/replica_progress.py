"""A replica's progress with its copy, from observations of its log end and its leader's.

Offsets are exact: each broker reports its own replica's log end. Bytes are from the sizes of the
logs. They show how much there is to send, but not when a copy is complete, since the leader's log
may be compacted differently or have other segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from caughtup.models.histories.offset_sums import SumPoint
from caughtup.models.histories.trend import Trend, trend
from caughtup.models.records.reassignments import ReassignmentRecord

#: The most points of a trend, which compares all pairs of them.
TREND_POINTS = 12
#: The part of the remaining time over which a pace is taken, if that is longer than the window.
FAR = 0.2


@dataclass(frozen=True, slots=True)
class ReplicaProgress:
    """What is observed of one replica's copy. Offsets; bytes; times in ms since the epoch.

    ``samples`` counts observations with its log end; ``log_end`` is the last one, at ``seen_ms``.
    ``behind`` is what it has yet to copy, None if the leader's end was never known; it is a lower
    bound if ``behind_exact`` is False, since the leader's end is then of an older observation.
    ``moved`` is whether it ever grew; ``stands_since_ms`` is since when it has had something to
    copy and has not grown. ``near_since_ms`` is since when it is at most one observation behind,
    None if it is further, and ``near_observations`` for how many in a row. ``longest_step`` is the
    most it copied from one observation to the next. Over the long time, ``drops`` counts how often
    its log end went back, ``dropped_since_ms`` is the first time; ``gained`` and ``lost`` are
    offsets since then. ``closing`` is by how many offsets a second ``behind`` shrinks;
    ``falls_back``, if it does not, by how many it grew over the long time. ``rate`` is what it
    copies and ``growth`` what its leader gets, in offsets a second; ``rate_bytes`` and
    ``growth_bytes`` are the same in bytes a second.
    """

    broker: int
    samples: int = 0
    log_end: int | None = None
    seen_ms: int | None = None
    behind: int | None = None
    behind_exact: bool = False
    moved: bool = False
    stands_since_ms: int | None = None
    near_since_ms: int | None = None
    near_observations: int = 0
    longest_step: int = 0
    drops: int = 0
    dropped_since_ms: int | None = None
    gained: int = 0
    lost: int = 0
    closing: Trend | None = None
    falls_back: Trend | None = None
    rate: float | None = None
    growth: float | None = None
    bytes_behind: int | None = None
    rate_bytes: float | None = None
    growth_bytes: float | None = None


def replica_progress(
    observations: Sequence[ReassignmentRecord], broker: int, window_ms: int, long_ms: int
) -> ReplicaProgress:
    """Return a replica's progress, from observations, oldest first.

    Rates are over the last ``window_ms``, or longer if the end is far off; ``falls_back`` is over
    ``long_ms``.
    """
    known = [observation for observation in observations if broker in observation.log_ends]
    if not known:
        return ReplicaProgress(broker)
    last = known[-1]
    history = _CopyHistory(broker, last.as_of_ms - long_ms, known[0].as_of_ms)
    for observation in observations:
        history.add(observation)
    behind, exact = _behind(observations, last, broker)
    copied = [observation for observation in known if observation.as_of_ms >= history.started_ms]
    gaps = _gaps(copied, broker, last.as_of_ms - window_ms)
    gap = _trend(gaps)
    falls_back = None
    if gap is not None and gap.per_second >= 0:
        falls_back = _trend(_gaps(copied, broker, last.as_of_ms - long_ms))
    elif gap is not None and behind is not None:
        # A distant end is estimated better from more than the last minute.
        far_ms = round(behind / -gap.per_second * 1000 * FAR)
        if far_ms > window_ms:
            gaps = _gaps(copied, broker, last.as_of_ms - far_ms)
            gap = _trend(gaps)
    growth = _grown([(at, head) for at, _, head in gaps])
    rate = None
    if gap is not None and growth is not None:
        rate = max(0.0, growth - gap.per_second) if history.moved else 0.0
    recent_ms = max(last.as_of_ms - window_ms, history.started_ms)
    sizes = _Sizes.of(
        [observation for observation in known if observation.as_of_ms >= recent_ms], broker
    )
    return ReplicaProgress(
        broker=broker,
        samples=len(known),
        log_end=last.log_ends[broker],
        seen_ms=last.as_of_ms,
        behind=behind,
        behind_exact=exact,
        moved=history.moved,
        stands_since_ms=history.stands_since_ms,
        near_since_ms=history.near_since_ms,
        near_observations=history.near_observations,
        longest_step=history.longest_step,
        drops=history.drops,
        dropped_since_ms=history.dropped_since_ms,
        gained=history.gained,
        lost=history.lost,
        closing=None if gap is None else -gap,
        falls_back=falls_back,
        rate=rate,
        growth=growth,
        bytes_behind=0 if behind == 0 and exact else sizes.behind,
        rate_bytes=sizes.rate,
        growth_bytes=sizes.growth,
    )


def observation_interval_ms(observations: Sequence[ReassignmentRecord]) -> int:
    """Return the longest of the last three times between observations, in ms; 0 without one."""
    times = [observation.as_of_ms for observation in observations[-4:]]
    return max((after - before for before, after in pairwise(times)), default=0)


class _Sizes(NamedTuple):
    """The bytes that a replica is behind, and its own and its leader's growth in bytes a second."""

    behind: int | None
    rate: float | None
    growth: float | None

    @classmethod
    def of(cls, observations: Sequence[ReassignmentRecord], broker: int) -> _Sizes:
        known = [
            (observation.as_of_ms, size, led)
            for observation in observations
            if observation.leader is not None
            and (size := observation.sizes.get(broker)) is not None
            and (led := observation.sizes.get(observation.leader)) is not None
        ]
        if not known:
            return cls(None, None, None)
        return cls(
            max(0, known[-1][2] - known[-1][1]),
            _grown([(at, size) for at, size, _ in known]),
            _grown([(at, led) for at, _, led in known]),
        )


def _behind(
    observations: Sequence[ReassignmentRecord], last: ReassignmentRecord, replica: int
) -> tuple[int | None, bool]:
    """Return how many offsets a replica was behind when last known, and whether that is exact.

    Without its end at that time, an older end of the same leader gives a lower bound.
    """
    behind = last.offsets_behind(replica)
    if behind is not None:
        return behind, True
    end = last.log_ends[replica]
    leader, epoch = observations[-1].leader, observations[-1].leader_epoch
    for observation in reversed(observations):
        if observation.leader != leader or observation.leader_epoch != epoch:
            break
        head = observation.leader_end
        if head is not None:
            return (head - end, False) if head > end else (None, False)
    return None, False


def _grown(points: Sequence[tuple[int, int]]) -> float | None:
    """Return the growth a second of (ms, size), without steps back (deleted segments)."""
    if len(points) < 2:
        return None
    grown = sum(max(0, after - before) for (_, before), (_, after) in pairwise(points))
    return grown * 1000 / (points[-1][0] - points[0][0])


def _gaps(
    copied: Sequence[ReassignmentRecord], replica: int, since_ms: int
) -> list[tuple[int, int, int]]:
    """Return times (ms), offsets behind and the leader's end, at most TREND_POINTS, evenly spread."""
    known = [
        (observation.as_of_ms, head - observation.log_ends[replica], head)
        for observation in copied
        if observation.as_of_ms >= since_ms and (head := observation.leader_end) is not None
    ]
    if len(known) <= TREND_POINTS:
        return known
    last = len(known) - 1
    return [known[round(step * last / (TREND_POINTS - 1))] for step in range(TREND_POINTS)]


def _trend(gaps: list[tuple[int, int, int]]) -> Trend | None:
    return trend([SumPoint(at, behind, behind) for at, behind, _ in gaps])


class _CopyHistory:
    """A replica's history; the attributes are those of ReplicaProgress.

    ``started_ms`` is when its log end last went back; rates are taken from then on.
    """

    __slots__ = (
        "_broker",
        "_end",
        "_head",
        "_since_ms",
        "_start",
        "dropped_since_ms",
        "drops",
        "gained",
        "longest_step",
        "lost",
        "moved",
        "near_observations",
        "near_since_ms",
        "stands_since_ms",
        "started_ms",
    )

    def __init__(self, broker: int, since_ms: int, first_ms: int) -> None:
        self._broker, self._since_ms = broker, since_ms
        self._end: int | None = None
        self._head: int | None = None
        self._start: int | None = None
        self.moved, self.longest_step = False, 0
        self.drops, self.gained, self.lost = 0, 0, 0
        self.dropped_since_ms: int | None = None
        self.started_ms = self.stands_since_ms = first_ms
        self.near_since_ms: int | None = None
        self.near_observations = 0

    def add(self, observation: ReassignmentRecord) -> None:
        """Add the next observation."""
        at_ms = observation.as_of_ms
        apart = self._broker in observation.offline or self._broker in observation.isr
        if apart or observation.leader is None:  # it cannot copy, or need not
            self.stands_since_ms, self.near_since_ms, self.near_observations = at_ms, None, 0
        end = observation.log_ends.get(self._broker)
        if end is None:
            return
        if end and (self._start is None or end < self._start):
            self._start = end
        if self._end is not None and end != self._end:
            self._changed(self._end, end, at_ms)
        self._end = end
        head = observation.leader_end
        if head is None:  # it is unknown whether it had something to copy
            return
        there = end >= head
        if there:
            self.stands_since_ms = at_ms
        if not apart:
            if there or (self._head is not None and end >= self._head):
                self.near_since_ms = at_ms if self.near_since_ms is None else self.near_since_ms
                self.near_observations += 1
            else:
                self.near_since_ms, self.near_observations = None, 0
        self._head = head

    def _changed(self, before: int, end: int, at_ms: int) -> None:
        self.stands_since_ms = at_ms
        # An empty replica counts as one at the log's start, to which it goes at once.
        start = self._start or 0
        copied = max(end, start) - max(before, start)
        if end > before:
            self.moved = True
            self.gained += 0 if self.dropped_since_ms is None else copied
            if before:
                self.longest_step = max(self.longest_step, copied)
            return
        self.started_ms = at_ms
        if at_ms <= self._since_ms:
            return
        self.drops += 1
        if self.dropped_since_ms is None:
            self.dropped_since_ms = at_ms
        else:
            self.lost -= copied
