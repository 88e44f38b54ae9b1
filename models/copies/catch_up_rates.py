"""Catch-up rates from the topic ``caughtup-catch-up-rates``.

The stream on Spark measures them over windows (``pipelines/rates/stream.py``) and writes those that
changed. While the stream is down, the service uses the rates that it measures itself.
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
from caughtup.models.tasks.positions import CopyTable

#: The windows over which rates are measured, in seconds.
WINDOWS_SECONDS = (60, 300, 900)
#: The least samples for a rate over a window; they must span half of the window, too.
FEWEST_SAMPLES = 5
#: Applications and the probe repeat unchanged values after this time.
REPEATED_MS = 60_000
#: The most copies with rates, over all groups: records about groups that don't exist may arrive.
MOST_COPIES = 250_000
#: The stream counts as down after this many triggers beyond ``REPEATED_MS``.
TRIGGERS_MISSED = 3

#: The sources of a copy's rate, as shown to users.
SOURCES = ("spark", "own")


class WindowRate(NamedTuple):
    """The growth of an offset over a window, in offsets a second; None with too few samples.

    ``per_second``: the median slope between samples at least half of their span apart (Theil-Sen,
    ``models/histories/trend.py``); ``spread``: half the width of its 95 % confidence interval.
    """

    per_second: float | None
    spread: float | None
    samples: int


class RateWindow(NamedTuple):
    """The rates of a copy's position and of its task's end offset sum over one window."""

    seconds: int
    position: WindowRate
    end: WindowRate


def window_rate(points: Sequence[tuple[int, int]], seconds: int) -> WindowRate:
    """Return the rate over a window from its samples: (ms since the epoch, offset), in order."""
    samples = len(points)
    if samples < FEWEST_SAMPLES or (points[-1][0] - points[0][0]) * 2 < seconds * 1000:
        return WindowRate(None, None, samples)
    found = trend([SumPoint(at_ms, offset, offset) for at_ms, offset in points])
    assert found is not None  # there are two samples at least
    return WindowRate(round(found.per_second, 3), round(found.error, 3), samples)


def choose_rate(as_of_ms: int, windows: Sequence[RateWindowRecord]) -> CatchUpRate | None:
    """Return a copy's rate over the shortest window that has one; None if none has."""
    for window in sorted(windows, key=lambda one: one.seconds):
        rate, error = or_none(window.position_per_second), or_none(window.spread)
        if rate is not None and error is not None:
            return CatchUpRate(rate, error, window.seconds * 1000, as_of_ms)
    return None


_NONE: Mapping[CopyKey, CatchUpRate] = MappingProxyType({})


class CatchUpRates:
    """The newest rate of every copy, by group, and whether the stream that measures them is up.

    ``newest_ms``: when the stream's newest record was written, by the broker's clock; None before
    the first.
    """

    def __init__(self, most_copies: int = MOST_COPIES) -> None:
        self._rates = CopyTable[CatchUpRate](most_copies)
        self.newest_ms: int | None = None
        self._trigger_ms = 0

    def record_written(self, at_ms: int, trigger_ms: int, now_ms: int) -> None:
        """Record that the stream, triggered every ``trigger_ms``, wrote a record at ``at_ms``.

        An older time replaces the newest only if that is in the future, because the broker's clock
        was set back.
        """
        newest_ms = self.newest_ms
        if newest_ms is None or at_ms >= newest_ms or is_from_the_future(newest_ms, now_ms):
            self.newest_ms, self._trigger_ms = at_ms, trigger_ms

    def apply(self, group: str, copy: CopyKey, rate: CatchUpRate | None) -> bool:
        """Set a copy's rate, or remove it (None); return False if there are too many copies."""
        return self._rates.apply(group, copy, rate)

    def groups(self) -> KeysView[str]:
        """Return the groups with rates."""
        return self._rates.groups()

    def forget(self, group: str) -> None:
        """Forget a group's rates."""
        self._rates.forget(group)

    def live(self, now_ms: int) -> bool | None:
        """Return whether the stream is up, by its newest record; None before the first."""
        if self.newest_ms is None:
            return None
        return now_ms - self.newest_ms <= REPEATED_MS + TRIGGERS_MISSED * self._trigger_ms

    def of(self, group: str, now_ms: int) -> Mapping[CopyKey, CatchUpRate]:
        """Return the rates of a group's copies, none while the stream is down."""
        return self._rates.of(group) if self.live(now_ms) else _NONE
