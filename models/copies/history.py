"""The history of a copy of a task: its positions and lags over time, and its losses.

A copy is *observed* when its process reports its offset sum in a rebalance, or its application
reports its position between rebalances. A copy *moves* when its position certainly grew between two
observations; its *interval* is the time from one move to the next while it has something to
restore.
"""

from __future__ import annotations

from typing import NamedTuple

from caughtup.models.histories.offset_sums import EndOffsetSum, SumHistory, SumPoint
from caughtup.models.ids import CopyKey

#: The number of waits between moves that are kept. With fewer than FEWEST_WAITS, the interval is
#: unknown; with fewer than ENOUGH_WAITS it is the longest wait, else the second longest, so that
#: one pause doesn't count.
WAITS_KEPT = 8
FEWEST_WAITS = 2
ENOUGH_WAITS = 5
#: The intervals that a copy may stand before it counts as stalled.
INTERVALS_ALLOWED = 3
#: The least allowance, in ms: Kafka's default of ``commit.interval.ms``, at which an instance
#: writes its checkpoints. A shorter standstill may be a pause of the disk.
LEAST_ALLOWED_MS = 30_000
#: Rates are measured over this time, or over the allowance or FEWEST_POINTS points if longer.
RATE_SPAN_MS = 120_000
FEWEST_POINTS = 6
#: With more points than this, the first one is left out.
POINTS_ENOUGH = 4

REPORTED = "reported"
MEASURED = "measured"


class Observation(NamedTuple):
    """The reported state of a copy at a moment (ms since the epoch).

    At least one of ``offset_sum`` and ``lag`` is set, in offsets. ``end``: bounds of its task's end
    offset sum at that moment, None to take them from the history of that sum. ``provenance``:
    ``reported`` in a rebalance, or ``measured`` by a position report.
    """

    at_ms: int
    offset_sum: int | None = None
    lag: int | None = None
    end: EndOffsetSum | None = None
    provenance: str = MEASURED


class SetBack(NamedTuple):
    """A copy's position that went back from one offset sum to a lower one, observed at ``at_ms``."""

    before: int
    after: int
    at_ms: int


class CopyHistory:
    """A copy's positions and lags, oldest first, since it last started over.

    ``provenance``: that of the newest observation. ``idle_ms``: when it was last observed without
    lag. ``set_back``: the last time its position went back. ``caught_up_since_ms``: since when it is
    caught up. ``moved_ms``: when a move was last observed. Each is None if there is none.
    """

    __slots__ = (
        "_highest_position",
        "_last_ms",
        "_moving_from_ms",
        "_standing_since_ms",
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
        # Since when it has had something to restore without moving.
        self._standing_since_ms: int | None = None
        self._moving_from_ms: int | None = None
        # A position above this is certainly a move since the last one.
        self._highest_position = 0
        self._waits: tuple[int, ...] = ()

    def observe(self, observation: Observation, ends: SumHistory, limit: int) -> bool:
        """Add an observation; return False for one older than the newest, which is ignored.

        A second observation of one moment replaces the first. ``ends`` are the end offset sums of
        its task; ``limit`` is the greatest lag of a caught-up copy. Of a caught-up copy only the
        last observations are kept: it moves as fast as records are written, which doesn't show how
        fast it could.

        A position certainly below the last one means that the copy started over (its store was
        wiped, or its checkpoint was out of range) or returned to its checkpoint: its history begins
        again, but its interval stays. Rebalances and position reports count transaction markers
        differently, and a lag and its end offsets are from different moments; so except between two
        offset sums of the same provenance, only a loss of more than half counts.
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
                self.idle_ms = self._standing_since_ms = self._moving_from_ms = at_ms
            self._catch_up(at_ms, caught_up=lag.high <= limit)
        self._last_ms = at_ms
        self.provenance = observation.provenance
        if self._standing_since_ms is None:
            self._standing_since_ms = at_ms
        return True

    def _move(self, observation: Observation, position: EndOffsetSum) -> None:
        at_ms, last = observation.at_ms, self.positions.last
        if last is None or self._standing_since_ms is None:
            self._highest_position = position.high
            return
        if at_ms == last.at_ms:  # the same moment, better known
            if at_ms == (self.moved_ms or self._standing_since_ms):
                self._highest_position = position.high
            return
        alike = observation.provenance == self.provenance and observation.offset_sum is not None
        if position.high < last.low and (alike or position.high * 2 < last.low):
            self.set_back = SetBack(last.low, position.high, at_ms)
            self.positions.keep_last(0)
            self.lags.keep_last(0)
            self.moved_ms = self._moving_from_ms = self._standing_since_ms = None
            self.caught_up_since_ms = None
            self._highest_position = position.high
        elif position.low > self._highest_position:
            wait = at_ms - self._standing_since_ms
            allowed = self.allowed_ms
            if self.moved_ms is None or (allowed is not None and wait > allowed):
                self._moving_from_ms = last.at_ms
            if self.moved_ms is not None:
                self._waits = (*self._waits, wait)[-WAITS_KEPT:]
            self.moved_ms = self._standing_since_ms = at_ms
            self._highest_position = position.high

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

    def record_waited_until(self, at_ms: int) -> None:
        """Record that the copy couldn't move until ``at_ms``, so that time doesn't count as standing."""
        if self._standing_since_ms is not None and at_ms > self._standing_since_ms:
            self._standing_since_ms = at_ms
            self.moved_ms = self._moving_from_ms = None

    @property
    def last_ms(self) -> int | None:
        """The time of the last observation, in ms since the epoch; None if there is none."""
        return self._last_ms

    @property
    def interval_ms(self) -> int | None:
        """The time from one move to the next, in ms; None while too few moves are known."""
        waits = sorted(self._waits)
        if len(waits) < FEWEST_WAITS:
            return None
        return waits[-1] if len(waits) < ENOUGH_WAITS else waits[-2]

    @property
    def allowed_ms(self) -> int | None:
        """How long the copy may stand, in ms; None while its interval is unknown.

        It is never shorter than the times between observations, or a commit interval, allow.
        """
        interval = self.interval_ms
        if interval is None:
            return None
        longest = max(interval, self.positions.spacing_ms or 0)
        return max(LEAST_ALLOWED_MS, INTERVALS_ALLOWED * longest)

    @property
    def stood_ms(self) -> int:
        """How long it didn't move with something to restore, in ms, up to the last observation."""
        if not self.positions or self._standing_since_ms is None or self._last_ms is None:
            return 0
        return max(0, self._last_ms - self._standing_since_ms)

    def rate_points(self) -> list[SumPoint]:
        """Return the lags from which its rate is computed: recent ones, since it began to move.

        A wait longer than the allowance counts as a new beginning. The first point is left out once
        enough follow: a copy that begins at 0 jumps to the start of its changelog.
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
    """Return bounds of a copy's position and lag, each None if unknown."""
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


#: The number of generations for which a loss is remembered.
GENERATIONS_WATCHED = 10


class CopyLosses:
    """How often each copy was lost and rebuilt within the last generations.

    A copy is lost when its process has neither the active nor a standby of the task in a
    generation, and rebuilt when it has one in a later generation, or when its store started over.
    """

    def __init__(self) -> None:
        self._generation = 0
        self._held: set[CopyKey] = set()
        # The generations, as counted here, in which copies were lost and rebuilt.
        self._lost: dict[CopyKey, int] = {}
        self._rebuilt: dict[CopyKey, list[int]] = {}

    def apply_generation(self, held: set[CopyKey]) -> None:
        """Apply the copies of a new generation, in any role."""
        self._generation += 1
        oldest = self._oldest
        self._lost = {copy: lost for copy, lost in self._lost.items() if lost >= oldest}
        self._rebuilt = {c: built for c, built in self._rebuilt.items() if built[-1] >= oldest}
        for copy in self._held - held:
            self._lost[copy] = self._generation
        for copy in held - self._held:
            if self._lost.pop(copy, None) is not None:
                self.record_rebuilt(copy)
        self._held = held

    def record_rebuilt(self, copy: CopyKey) -> None:
        """Record that a copy started over in the present generation."""
        self._rebuilt.setdefault(copy, []).append(self._generation)

    def of(self, copy: CopyKey) -> int:
        """Return how often a copy was lost and rebuilt within ``GENERATIONS_WATCHED``."""
        return sum(built >= self._oldest for built in self._rebuilt.get(copy, ()))

    @property
    def _oldest(self) -> int:
        return self._generation - GENERATIONS_WATCHED + 1
