"""Whether what was sampled over time stays flat: a robust slope, and bounds on what it adds up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

#: What a service fills at first: interpreters, connections, histories that have a bound.
SETTLED_SECONDS = 600.0
#: A slope takes pairs of samples; more than these are thinned out.
_MOST_SAMPLES = 400


@dataclass(frozen=True)
class Measure:
    """A figure of the process: its column, its unit, and how much it may grow.

    By ``share`` of its median or by ``least`` of its unit, whichever is more, over the whole time
    that is judged.
    """

    column: str
    title: str
    share: float
    least: float


MEASURES = (
    Measure("rss_mib", "Resident memory, MiB", 0.05, 8.0),
    Measure("handles", "File handles", 0.0, 3.0),
    Measure("threads", "Threads", 0.0, 2.0),
    Measure("longest_turn_ms", "The loop's longest turn in 5 s, CPU ms", 0.5, 25.0),
    Measure("scrape_ms", "A scrape of /metrics, ms", 0.5, 50.0),
)


@dataclass(frozen=True)
class Verdict:
    """By how much a figure grew while it was judged, and how much it may have."""

    measure: Measure
    median: float
    growth: float
    bound: float

    @property
    def is_flat(self) -> bool:
        """Whether it grew by no more."""
        return self.growth <= self.bound


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Return the median slope between two samples (Theil and Sen): a few spikes don't count."""
    step = max(1, len(times) // _MOST_SAMPLES)
    points = list(zip(times[::step], values[::step], strict=True))
    slopes = [
        (later - value) / (then - at)
        for number, (at, value) in enumerate(points)
        for then, later in points[number + 1 :]
        if then > at
    ]
    return median(slopes) if slopes else 0.0


def judged(samples: Sequence[dict[str, float]]) -> list[Verdict]:
    """Judge each figure after ten minutes, or after the first third of less than half an hour."""
    if not samples:
        return []
    end = samples[-1]["seconds"]
    settled = [one for one in samples if one["seconds"] >= min(SETTLED_SECONDS, end / 3)]
    times = [one["seconds"] for one in settled]
    found = []
    for measure in MEASURES:
        values = [one[measure.column] for one in settled]
        middle = median(values)
        growth = slope(times, values) * (times[-1] - times[0])
        bound = max(measure.share * middle, measure.least)
        found.append(Verdict(measure, middle, growth, bound))
    return found
