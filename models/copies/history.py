"""Where a copy of a task's state was over time, and how it moved: bounded, like a commit history.

A copy is *observed* when its process reports its offsets in a rebalance, or its application
reports its position in between. A copy *moves* when its position certainly grew from one
observation to another; its *interval* is how long it takes from one move to the next while there
is something to restore.
"""

from __future__ import annotations

from typing import NamedTuple

from caughtup.models.histories.offset_sums import EndOffsetSum, SumHistory, SumPoint

#: Waits between moves that are kept. With fewer than the first there is no rhythm yet; with fewer
#: than the second, the longest is it; else the second longest, so that one pause makes no rhythm.
WAITS_KEPT = 8
FEWEST_WAITS = 2
ENOUGH_WAITS = 5
#: A copy that takes longer than this many of its own intervals for a move isn't in its rhythm.
INTERVALS_ALLOWED = 3
#: The least allowance, in ms: Kafka's default of ``commit.interval.ms``, by which an instance
#: writes down where its copies are. In less, a pause of the disk is as likely as a standstill.
LEAST_ALLOWED_MS = 30_000
#: Rates are taken from the last minutes, or from the allowance or this many points if those reach
#: further back.
RATE_SPAN_MS = 120_000
FEWEST_POINTS = 6
#: Points from which on the first one, with the step that follows it, is left out.
POINTS_ENOUGH = 4

REPORTED = "reported"
MEASURED = "measured"


class Observation(NamedTuple):
    """What somebody saw of a copy at a moment (ms since the epoch).

    At least one of ``offset_sum`` (what it has restored) and ``lag`` (what it hasn't), in offsets.
    ``end``: bounds of its task's end offset sum at that moment; None lets the known ends tell.
    ``provenance``: ``reported`` by the rebalance, or ``measured`` by a position report.
    """

    at_ms: int
    offset_sum: int | None = None
    lag: int | None = None
    end: EndOffsetSum | None = None
    provenance: str = MEASURED


class SetBack(NamedTuple):
    """A copy that had restored up to an offset sum and was seen at a lower one (ms)."""

    had: int
    has: int
    at_ms: int


class CopyHistory:
    """A copy's positions and lags, oldest first, since it last started over.

    ``provenance`` of the newest observation. ``idle_ms``: when it was last seen with nothing to
    restore, None if never. ``set_back``: the last time it went back, None if it
    never did. ``caught_up_since_ms``: since when it was seen caught up, None if it isn't. ``moved_ms``: when it was last seen to have moved, None while it wasn't.
    """

    __slots__ = (
        "_last_ms",
        "_moving_from_ms",
        "_something_since_ms",
        "_stands_at",
        "_waits",
        "caught_up_since_ms",
        "idle_ms",
        "lags",
        "moved_ms",
        "positions",
        "provenance",
        "set_back",
    )

    def __init__(self) -> None:
        self.positions = SumHistory()
        self.lags = SumHistory()
        self.provenance: str | None = None
        self.idle_ms: int | None = None
        self.caught_up_since_ms: int | None = None
        self.set_back: SetBack | None = None
        self.moved_ms: int | None = None
        self._last_ms: int | None = None
        # Since when there has been something to restore that it hasn't moved for.
        self._something_since_ms: int | None = None
        self._moving_from_ms: int | None = None
        # Beyond this it has certainly moved since it last did.
        self._stands_at = 0
        self._waits: tuple[int, ...] = ()

    def observe(self, observation: Observation, ends: SumHistory, limit: int) -> bool:
        """Add an observation; return False for one older than the newest, which is ignored.

        A second observation of one moment takes the place of the first. A position that
        certainly lies before the last one means that the copy started over (its store was wiped,
        or its checkpoint was out of range) or fell back to its checkpoint: its history begins
        again, and only its rhythm is kept. A rebalance and a position report count transaction
        markers differently, and a lag was taken at another moment than the end that it is
        measured from; so except between two offset sums of the same kind, only a loss of more
        than half counts. ``ends``
        are those of its task; ``limit`` is the lag at which it counts as caught up. While it
        does, nothing but the last observation is kept: it goes as fast as records come, which
        says nothing of how fast it can go.
        """
        at_ms = observation.at_ms
        if self._last_ms is not None and at_ms < self._last_ms:
            return False
        end = observation.end or ends.around(at_ms)
        position, lag = _bounds(observation, end)
        if position is not None:
            self._move(observation, position)
            self.positions.add(at_ms, *position)
        if lag is not None:
            self.lags.add(at_ms, *lag)
            if lag.low <= 0:
                self.idle_ms = self._something_since_ms = self._moving_from_ms = at_ms
            self._catch_up(at_ms, caught_up=lag.high <= limit)
        self._last_ms = at_ms
        self.provenance = observation.provenance
        if self._something_since_ms is None:
            self._something_since_ms = at_ms
        return True

    def _move(self, observation: Observation, position: EndOffsetSum) -> None:
        at_ms, last = observation.at_ms, self.positions.last
        if last is None or self._something_since_ms is None:
            self._stands_at = position.high
            return
        if at_ms == last.at_ms:  # the same is told better
            if at_ms == (self.moved_ms or self._something_since_ms):
                self._stands_at = position.high
            return
        alike = observation.provenance == self.provenance and observation.offset_sum is not None
        if position.high < last.low and (alike or position.high * 2 < last.low):
            self.set_back = SetBack(last.low, position.high, at_ms)
            self.positions.keep_last(0)
            self.lags.keep_last(0)
            self.moved_ms = self._moving_from_ms = self._something_since_ms = None
            self.caught_up_since_ms = None
            self._stands_at = position.high
        elif position.low > self._stands_at:
            wait = at_ms - self._something_since_ms
            allowed = self.allowed_ms
            if self.moved_ms is None or (allowed is not None and wait > allowed):
                self._moving_from_ms = last.at_ms
            if self.moved_ms is not None:
                self._waits = (*self._waits, wait)[-WAITS_KEPT:]
            self.moved_ms = self._something_since_ms = at_ms
            self._stands_at = position.high

    def _catch_up(self, at_ms: int, *, caught_up: bool) -> None:
        if not caught_up:
            self.caught_up_since_ms = None
            return
        if self.caught_up_since_ms is None:
            self.caught_up_since_ms = at_ms
        else:
            self.positions.keep_last(2)
            self.lags.keep_last(2)
        self._moving_from_ms = at_ms

    def excuse(self, at_ms: int) -> None:
        """Record that the copy couldn't move until then (ms): it isn't slow for having stood."""
        if self._something_since_ms is not None and at_ms > self._something_since_ms:
            self._something_since_ms = at_ms
            self.moved_ms = self._moving_from_ms = None

    @property
    def last_ms(self) -> int | None:
        """When it was last observed, in ms since the epoch; None if never."""
        return self._last_ms

    @property
    def interval_ms(self) -> int | None:
        """How long the copy takes from one move to the next, in ms; None while that isn't known.

        The second longest such time, or the longest while few are known.
        """
        waits = sorted(self._waits)
        if len(waits) < FEWEST_WAITS:
            return None
        return waits[-1] if len(waits) < ENOUGH_WAITS else waits[-2]

    @property
    def allowed_ms(self) -> int | None:
        """How long it may stand while it is in its rhythm, in ms; None while it has none.

        Observations can't tell less time than lies between two of them, nor a commit interval.
        """
        interval = self.interval_ms
        if interval is None:
            return None
        longest = max(interval, self.positions.spacing_ms or 0)
        return max(LEAST_ALLOWED_MS, INTERVALS_ALLOWED * longest)

    @property
    def stood_ms(self) -> int:
        """For how long it was seen to have something to restore and not to move, in ms.

        Up to the last observation: nobody knows what it did since.
        """
        if not self.positions or self._something_since_ms is None or self._last_ms is None:
            return 0
        return max(0, self._last_ms - self._something_since_ms)

    def rate_points(self) -> list[SumPoint]:
        """List the lags that tell its pace: of the last minutes, since it began to move.

        Not from before a wait that was out of its rhythm. The step with which it began is left
        out once enough follow: a copy that begins at 0 jumps to where its changelog begins.
        """
        last = self.lags.last
        if last is None:
            return []
        if self.positions and self._moving_from_ms is None:
            return []
        points = self.lags.points(self._moving_from_ms)
        if len(points) > POINTS_ENOUGH:
            points = points[1:]
        allowed_ms = (self.allowed_ms or 0) + (self.lags.spacing_ms or 0)
        since_ms = last.at_ms - max(RATE_SPAN_MS, allowed_ms)
        recent = [point for point in points if point.at_ms >= since_ms]
        return recent if len(recent) >= FEWEST_POINTS else points[-FEWEST_POINTS:]


def _bounds(
    observation: Observation, end: EndOffsetSum | None
) -> tuple[EndOffsetSum | None, EndOffsetSum | None]:
    """Return bounds of a copy's position and lag, each None where it isn't known."""
    position = lag = None
    if observation.offset_sum is not None:
        position = EndOffsetSum(observation.offset_sum, observation.offset_sum)
        if end is not None:
            lag = EndOffsetSum(*end.lags(observation.offset_sum))
    if observation.lag is not None:
        lag = EndOffsetSum(observation.lag, observation.lag)
        if position is None and end is not None:
            position = EndOffsetSum(
                max(0, end.low - observation.lag), max(0, end.high - observation.lag)
            )
    return position, lag
