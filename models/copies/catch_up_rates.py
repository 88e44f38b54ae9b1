"""Catch-up rates from ``caughtup-catch-up-rates``: which to use, and when.

Spark takes them over windows (``pipelines/rates/stream.py``) and writes what changed. While its
stream is silent the service goes by the rates that it takes itself.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from caughtup.models.clocks import is_from_the_future
from caughtup.models.copies.figures import CatchUpRate
from caughtup.models.histories.offset_sums import SumPoint
from caughtup.models.histories.trend import trend
from caughtup.models.ids import CopyKey
from caughtup.models.records.catch_up_rates import RateWindowRecord
from caughtup.models.records.fields import or_none
from caughtup.models.tasks.copy_table import CopyTable

#: The windows that rates are taken over, in seconds.
WINDOWS_SECONDS = (60, 300, 900)
#: Samples that a window needs to have a rate; they have to reach over half of it, too.
FEWEST_SAMPLES = 5
#: Applications and the probe repeat each minute what didn't change.
REPEATED_MS = 60_000
#: Copies that rates are kept of, of all groups: anybody may write some of groups that there aren't.
MOST_COPIES = 250_000
#: The stream may miss so many triggers beyond that before it counts as down.
TRIGGERS_MISSED = 3

#: Where the rate of a copy is from (``CopyFigures.pace``), as users read it.
TOLD_AS: Mapping[str, str] = MappingProxyType({"given": "spark", "own": "own"})
SOURCES = ("spark", "own")


class WindowRate(NamedTuple):
    """How fast offsets grow over a window, in offsets a second; None with too few samples.

    ``per_second``: the median slope between samples at least half of their span apart
    (``models/histories/trend.py``, after Theil and Sen); ``spread``: how far it may be off in 95
    of 100 cases.
    """

    per_second: float | None
    spread: float | None
    samples: int


class RateWindow(NamedTuple):
    """What is known of a copy over one window: how it moves, and how the ends it is to reach do."""

    seconds: int
    position: WindowRate
    end: WindowRate


def window_rate(points: Sequence[tuple[int, int]], seconds: int) -> WindowRate:
    """Compute a window's rate from its samples: pairs of a moment (ms) and an offset, in order."""
    samples = len(points)
    if samples < FEWEST_SAMPLES or (points[-1][0] - points[0][0]) * 2 < seconds * 1000:
        return WindowRate(None, None, samples)
    found = trend([SumPoint(at_ms, offset, offset) for at_ms, offset in points])
    assert found is not None  # there are two samples at least
    return WindowRate(round(found.per_second, 3), round(found.error, 3), samples)


def choose_rate(as_of_ms: int, windows: Sequence[RateWindowRecord]) -> CatchUpRate | None:
    """Return a copy's rate over the shortest window that has one; None where none has."""
    for window in sorted(windows, key=lambda one: one.seconds):
        rate, error = or_none(window.position_per_second), or_none(window.spread)
        if rate is not None and error is not None:
            return CatchUpRate(rate, error, window.seconds * 1000, as_of_ms)
    return None


_NONE: Mapping[CopyKey, CatchUpRate] = MappingProxyType({})


class CatchUpRates:
    """The newest rate of every copy, by group, and whether there is somebody who takes them.

    ``newest_ms``: when the stream's newest record was written, by the broker's clock; None while
    there never was one.
    """

    def __init__(self, most_copies: int = MOST_COPIES) -> None:
        self._rates = CopyTable[CatchUpRate](most_copies)
        self.newest_ms: int | None = None
        self._trigger_ms = 0

    def record_written(self, at_ms: int, trigger_ms: int, now_ms: int) -> None:
        """Record that the stream, triggered every ``trigger_ms``, wrote at a moment (ms).

        That counts if it is the newest, unless that is yet to come by now: the broker's clock has
        been set back since.
        """
        newest_ms = self.newest_ms
        if newest_ms is None or at_ms >= newest_ms or is_from_the_future(newest_ms, now_ms):
            self.newest_ms, self._trigger_ms = at_ms, trigger_ms

    def apply(self, group: str, copy: CopyKey, rate: CatchUpRate | None) -> bool:
        """Set a copy's rate, or remove it (None); return False if there are too many."""
        return self._rates.apply(group, copy, rate)

    def groups(self) -> KeysView[str]:
        """Name the groups that there are rates of."""
        return self._rates.groups()

    def forget(self, group: str) -> None:
        """Forget a group's rates."""
        self._rates.forget(group)

    def live(self, now_ms: int) -> bool | None:
        """Return whether the stream is up, by its newest record; None while there never was one."""
        if self.newest_ms is None:
            return None
        return now_ms - self.newest_ms <= REPEATED_MS + TRIGGERS_MISSED * self._trigger_ms

    def of(self, group: str, now_ms: int) -> Mapping[CopyKey, CatchUpRate]:
        """Return the rates of a group's copies at a moment (ms): none while the stream is down."""
        return self._rates.of(group) if self.live(now_ms) else _NONE
