"""A copy of a task's state that restores from a changelog, on a clock that the test moves."""

from __future__ import annotations

from caughtup.models.copies.figures import CatchUpRate, CopyFigures, copy_figures
from caughtup.models.copies.history import MEASURED, CopyHistory, Observation
from caughtup.models.copies.warmups import CopyContext, copy_verdict
from caughtup.models.histories.offset_sums import EndOffsetSum, SumHistory
from caughtup.models.ids import TaskId

#: The clock starts here, in ms since the epoch.
START_MS = 1_790_000_000_000
SECOND = 1_000
MINUTE = 60 * SECOND
PROBING_INTERVAL_MS = 10 * MINUTE
LIMIT = 10_000


class SimulatedCopy:
    """Restores at most ``rate`` offsets a second, while ``growth`` offsets a second are written.

    The application reports the copy's position every ``report_ms`` (None: never), and the
    changelog's end is sampled every ``sample_ms``. The copy is caught up at a lag of ``limit``.
    ``by_lag``: the application reports lags, from which samples of the end give positions. ``now``
    is in ms since ``START_MS``.
    """

    def __init__(
        self,
        *,
        end: float = 100_000,
        position: float = 0,
        rate: float = 0,
        growth: float = 0,
        report_ms: int | None = 5 * SECOND,
        sample_ms: int = SECOND,
        limit: int = LIMIT,
        by_lag: bool = False,
    ) -> None:
        self.end, self.position = float(end), float(position)
        self.rate, self.growth = float(rate), float(growth)
        self.report_ms, self.sample_ms, self.limit = report_ms, sample_ms, limit
        self.by_lag = by_lag
        self.history = CopyHistory()
        self.ends = SumHistory()
        self.now = 0
        self.list_ends()
        self.report("reported")

    @property
    def lag(self) -> float:
        return self.end - self.position

    @property
    def now_ms(self) -> int:
        return START_MS + self.now

    def run(self, duration_ms: int) -> None:
        """Advance time in steps of 0.1 s."""
        for now in range(self.now + 100, self.now + duration_ms + 1, 100):
            self.now = now
            # Rounded, so that tenths add up exactly.
            self.end = round(self.end + self.growth / 10, 6)
            self.position = round(min(self.end, self.position + self.rate / 10), 6)
            if now % self.sample_ms == 0:
                self.list_ends()
            if self.report_ms is not None and now % self.report_ms == 0:
                self.report()

    def run_until_caught_up(self, most_ms: int = 60 * MINUTE) -> float:
        """Advance time until the lag is within the limit; return the seconds."""
        start = self.now
        while self.lag > self.limit:
            assert self.now - start < most_ms
            self.run(100)
        return (self.now - start) / 1000

    def list_ends(self) -> None:
        """Add a sample of the changelog's end."""
        self.ends.add(self.now_ms, int(self.end), int(self.end))

    def report(self, provenance: str = MEASURED) -> bool:
        """Report the copy's position."""
        end = EndOffsetSum(int(self.end), int(self.end))
        seen = Observation(self.now_ms, int(self.position), None, end, provenance)
        if self.by_lag:
            seen = Observation(self.now_ms, lag=int(self.end) - int(self.position))
        return self.history.observe(seen, self.ends, self.limit)

    def figures(self, given: CatchUpRate | None = None) -> CopyFigures:
        """Return the copy's figures now."""
        return copy_figures(self.history, self.ends, given, self.limit, self.now_ms)

    def verdict(
        self,
        context: CopyContext | None = None,
        given: CatchUpRate | None = None,
    ) -> tuple[str, str]:
        """Return the copy's verdict now, by default as a warm-up with a later probing rebalance."""
        if context is None:
            context = copy_context(rebalance_due_ms=self.now_ms + MINUTE)
        return copy_verdict(self.figures(given), context, self.now_ms)


def copy_context(
    *,
    is_warmup: bool = True,
    since_ms: int = START_MS,
    rebalance_due_ms: int | None = None,
    waits_for: tuple[TaskId, ...] = (),
    flaps: int = 0,
) -> CopyContext:
    """Return a warm-up's context with Kafka's default probing interval."""
    return CopyContext(is_warmup, since_ms, PROBING_INTERVAL_MS, rebalance_due_ms, waits_for, flaps)
