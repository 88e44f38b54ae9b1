"""The figures of a copy that restores: its lag, rates and time left."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from caughtup.models.copies.history import CopyHistory, SetBack
from caughtup.models.histories.offset_sums import SumHistory, SumPoint
from caughtup.models.histories.trend import Eta, Trend, time_to_go, trend

#: A published rate is used for this many times the length of its window.
WINDOWS_FRESH = 2
#: The source of a copy's rate, as shown to users, by ``CopyFigures.pace``.
SOURCE_BY_PACE: Mapping[str | None, str] = MappingProxyType({"given": "spark", "own": "own"})


class CatchUpRate(NamedTuple):
    """A copy's restore rate from ``caughtup-catch-up-rates``, in offsets a second, with its error.

    It was measured over a window of ``window_ms`` that ended at ``at_ms``.
    """

    per_second: float
    error: float
    window_ms: int
    at_ms: int


class CopyFigures(NamedTuple):
    """A copy's lag, how fast it shrinks, and when the copy will be caught up; None = unknown.

    ``lag``: as last observed, at ``lag.at_ms``, ``age_seconds`` ago, with its ``provenance``.
    ``limit``: the greatest lag of a caught-up copy; ``caught_up_since_ms``: since when it was
    observed there. ``estimated_lag``: the lag now if ``closing`` stayed the same. Offsets a second:
    ``closing``, by which the lag shrinks; ``rate``, restored; ``growth``, written to the changelogs.
    ``pace``: the source of the rate, ``own`` (the copy's positions) or ``given`` (published).
    ``eta``: from now. ``stood_seconds``: how long the copy didn't move; ``allowed_seconds``: how
    long it may stand, None while its interval is unknown. ``set_back``: the last time its position
    went back. ``seen_every_seconds``: time between observations. ``restored_before``: copies of its
    thread that are restored before it, after which it is expected to restore faster.
    """

    lag: SumPoint | None
    provenance: str | None
    limit: int
    age_seconds: float
    caught_up_since_ms: int | None
    estimated_lag: int | None
    closing: Trend | None
    rate: float | None
    growth: float | None
    pace: str | None
    eta: Eta | None
    stood_seconds: float
    allowed_seconds: float | None
    set_back: SetBack | None
    seen_every_seconds: float | None
    restored_before: int = 0

    @property
    def shown(self) -> dict[str, float | str | None]:
        """The figures that a copy's line has (``CopyLine``), by the names of its fields."""
        return {
            "eta_seconds": None if self.eta is None else self.eta.seconds,
            "rates": SOURCE_BY_PACE.get(self.pace),
        }


def copy_figures(
    history: CopyHistory,
    ends: SumHistory,
    given: CatchUpRate | None,
    limit: int,
    now_ms: int,
) -> CopyFigures:
    """Return the figures of one copy at ``now_ms``.

    ``ends``: its task's end offset sums over time. ``given``: a published rate, preferred to the
    copy's own while it is fresh. ``limit``: ``acceptable.recovery.lag`` in offsets; 0 for an active,
    which runs only once it is fully restored.
    """
    lag = history.lags.last
    closing, rate, growth, pace = _pace(history, ends, given, now_ms)
    eta = estimated = None
    age = 0.0
    if lag is not None:
        age = max(0, now_ms - lag.at_ms) / 1000
        to_go = lag._replace(low=lag.low - limit, high=lag.high - limit)
        if to_go.high <= 0:
            eta = Eta(0.0, 0.0, 0.0)
        elif closing is not None:
            eta = time_to_go(to_go, closing).after(age)
            estimated = max(0, round(lag.middle - closing.per_second * age))
        if age == 0:
            estimated = round(lag.middle)
    allowed, spacing = history.allowed_ms, history.lags.spacing_ms
    return CopyFigures(
        lag=lag,
        provenance=history.provenance,
        limit=limit,
        age_seconds=age,
        caught_up_since_ms=history.caught_up_since_ms if lag and lag.high <= limit else None,
        estimated_lag=estimated,
        closing=closing,
        rate=rate,
        growth=growth,
        pace=pace,
        eta=eta,
        stood_seconds=history.stood_ms / 1000,
        allowed_seconds=None if allowed is None else allowed / 1000,
        set_back=history.set_back,
        seen_every_seconds=None if spacing is None else spacing / 1000,
    )


def _pace(
    history: CopyHistory, ends: SumHistory, given: CatchUpRate | None, now_ms: int
) -> tuple[Trend | None, float | None, float | None, str | None]:
    """Return the trend by which the lag shrinks, the restore rate, the growth, and the source."""
    points = history.rate_points()
    if given is not None and _usable(given, history, now_ms):
        grows = trend(ends.points(now_ms - given.window_ms)) or trend(ends.points())
        if grows is not None:
            closing = grows._replace(
                per_second=given.per_second - grows.per_second, slack=given.error + grows.slack
            )
            return closing, given.per_second, grows.per_second, "given"
    lags = trend(points)
    if lags is None:
        return None, None, None, None
    closing = -lags
    moves = trend(history.positions.points(points[0].at_ms))
    if moves is None:
        return closing, None, None, "own"
    return closing, moves.per_second, max(0.0, moves.per_second - closing.per_second), "own"


def _usable(given: CatchUpRate, history: CopyHistory, now_ms: int) -> bool:
    """Return whether a published rate is fresh and was measured while this copy was restoring.

    A copy without lag only moves as fast as records are written.
    """
    if now_ms - given.at_ms > WINDOWS_FRESH * given.window_ms:
        return False
    begin = given.at_ms - given.window_ms
    if history.set_back is not None and history.set_back.at_ms > given.at_ms:
        return False
    return history.idle_ms is None or history.idle_ms <= begin
