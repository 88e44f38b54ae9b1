"""From positions of copies and end offsets of changelogs to rates over windows: pure.

Of the samples of the last quarter of an hour only those stay that a window counts: the newest of
each of its twenty buckets. So a window is worked out of as many samples however often somebody
reports, the state is bounded, and the result is the same however the records are dealt to batches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from caughtup.models.copies.catch_up_rates import (
    REPEATED_MS,
    WINDOWS_SECONDS,
    RateWindow,
    window_rate,
)
from caughtup.models.ids import TopicPartition

#: A window has at most so many samples and one more.
BUCKETS = 20
#: For how long a look at end offsets holds, in ms. One that found nothing new is repeated within
#: a minute; after twice that nobody looks any more.
LOOK_HOLDS_MS = 2 * REPEATED_MS


class Look(NamedTuple):
    """Where a changelog partition ended at a moment (ms)."""

    at_ms: int
    end: int


class Report(NamedTuple):
    """How many offsets a copy had yet to restore at a moment (ms), of each of its changelogs."""

    at_ms: int
    lags: tuple[int, ...]


class Place(NamedTuple):
    """Where a copy was at a moment (ms), and where its changelogs ended: sums of offsets."""

    at_ms: int
    position: int
    end: int


class Rates(NamedTuple):
    """Rates over every window up to a moment (ms)."""

    as_of_ms: int
    windows: tuple[RateWindow, ...]


_Sample = TypeVar("_Sample", Look, Report, Place)


@dataclass(slots=True)
class PartitionSamples:
    """Looks at a changelog partition, oldest first, and the rates that were last published."""

    topic: str
    partition: int
    looks: list[Look] = field(default_factory=list)
    told: Rates | None = None

    def add(self, look: Look) -> None:
        """Add a sample; the last one of a moment counts."""
        _insert(self.looks, look)

    def prune(self) -> None:
        """Drop the looks that no window counts."""
        self.looks = kept(self.looks)

    def since_made(self) -> Sequence[Look]:
        """Return the samples since the log was made: one that ends before it did was made anew."""
        return _since_last(self.looks, lambda before, after: after.end < before.end)

    def rates(self) -> Rates | None:
        """Compute how fast it grows over each window up to its newest sample."""
        looks = self.since_made()
        if not looks:
            return None
        return Rates(
            looks[-1].at_ms,
            tuple(
                RateWindow(seconds, window_rate([], seconds), window_rate(counted, seconds))
                for seconds in WINDOWS_SECONDS
                for counted in [in_window(looks, seconds)]
            ),
        )


@dataclass(slots=True)
class CopySamples:
    """What a copy reported, oldest first, of the changelogs that its newest report names.

    ``told``: the rates that were last published.
    """

    group: str
    process: str
    task: str
    partition: int
    changelogs: tuple[str, ...] = ()
    reports: list[Report] = field(default_factory=list)
    told: Rates | None = None

    def add(self, at_ms: int, lags: Mapping[str, int]) -> None:
        """Add a report: lags in offsets by changelog; the last one of a moment counts."""
        changelogs = tuple(sorted(lags))
        if changelogs != self.changelogs:
            if self.reports and at_ms < self.reports[-1].at_ms:
                return
            self.changelogs = changelogs
            self.reports.clear()
        _insert(self.reports, Report(at_ms, tuple(lags[topic] for topic in changelogs)))

    def prune(self) -> None:
        """Drop the reports that no window counts."""
        self.reports = kept(self.reports)

    def rates(self, partitions: Mapping[TopicPartition, PartitionSamples]) -> Rates | None:
        """Compute its rates over each window up to its newest report; None where none counts.

        Its position is the sum of its changelogs' ends at that moment, less its lags. A copy that
        lost more than half of its position started over, and its rates with it.
        """
        samples = [partitions.get(TopicPartition(name, self.partition)) for name in self.changelogs]
        looks = [one.since_made() for one in samples if one is not None]
        if len(looks) < len(samples):
            return None
        places = []
        for report in self.reports:
            ends = [end for of_one in looks if (end := end_at(of_one, report.at_ms)) is not None]
            if len(ends) == len(looks):
                end = sum(ends)
                places.append(Place(report.at_ms, max(0, end - sum(report.lags)), end))
        way = _since_last(places, lambda before, after: after.position * 2 < before.position)
        if not way:
            return None
        windows = []
        for seconds in WINDOWS_SECONDS:
            counted = in_window(way, seconds)
            position = window_rate([(one.at_ms, one.position) for one in counted], seconds)
            end_rate = window_rate([(one.at_ms, one.end) for one in counted], seconds)
            windows.append(RateWindow(seconds, position, end_rate))
        return Rates(way[-1].at_ms, tuple(windows))


def end_at(looks: Sequence[Look], at_ms: int) -> int | None:
    """Interpolate a log's end at a moment linearly between two samples.

    None before the first look, and where the last one doesn't hold any more.
    """
    index = bisect_right(looks, at_ms, key=lambda look: look.at_ms)
    if not index:
        return None
    before = looks[index - 1]
    if index == len(looks):
        return before.end if at_ms - before.at_ms <= LOOK_HOLDS_MS else None
    after = looks[index]
    part = (at_ms - before.at_ms) / (after.at_ms - before.at_ms)
    return before.end + round(part * (after.end - before.end))


def in_window(samples: Sequence[_Sample], seconds: int) -> list[_Sample]:
    """Return the samples that a window up to the newest of them counts, oldest first."""
    if not samples:
        return []
    width_ms = seconds * 1000 // BUCKETS
    begin_ms = samples[-1].at_ms - seconds * 1000
    first = bisect_right(samples, begin_ms, key=lambda sample: sample.at_ms)
    return list({one.at_ms // width_ms: one for one in samples[first:]}.values())


def kept(samples: Sequence[_Sample]) -> list[_Sample]:
    """Return the samples that any window counts, or may yet count, oldest first."""
    counted = {one.at_ms: one for each in WINDOWS_SECONDS for one in in_window(samples, each)}
    return [counted[at_ms] for at_ms in sorted(counted)]


def is_news(rates: Rates, told: Rates | None) -> bool:
    """Return whether rates are to be published: they changed, or a minute has passed."""
    if told is None:
        return True
    return rates.windows != told.windows or rates.as_of_ms - told.as_of_ms >= REPEATED_MS


def _insert(samples: list[_Sample], sample: _Sample) -> None:
    index = bisect_left(samples, sample.at_ms, key=lambda one: one.at_ms)
    same = index < len(samples) and samples[index].at_ms == sample.at_ms
    samples[index : index + same] = [sample]


def _since_last(
    samples: Sequence[_Sample], breaks: Callable[[_Sample, _Sample], bool]
) -> Sequence[_Sample]:
    """Return the samples after the last break between two of them."""
    for index in range(len(samples) - 1, 0, -1):
        if breaks(samples[index - 1], samples[index]):
            return samples[index:]
    return samples
