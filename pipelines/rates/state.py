"""From positions of copies and end offsets of changelogs to rates over windows: pure.

Of the samples of the last quarter of an hour only those stay that a window counts: the newest of
each of its twenty buckets. So a window is worked out of as many samples however often somebody
reports, the state is bounded, and the result is the same however the records are dealt to batches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from caughtup.models.copies.catch_up_rates import (
    REPEATED_MS,
    WINDOWS_SECONDS,
    RateWindow,
    window_rate,
)
from caughtup.models.ids import TopicPartition

#: A window has at most so many samples and one more.
BUCKETS = 20
#: For how long a sample of end offsets holds, in ms. One that shows nothing new is repeated within
#: a minute; after twice that end offsets are not sampled any more.
SAMPLE_HOLDS_MS = 2 * REPEATED_MS


class EndSample(NamedTuple):
    """Where a changelog partition ended at a moment (ms)."""

    at_ms: int
    end: int


class LagSample(NamedTuple):
    """How many offsets a copy had yet to restore at a moment (ms), of each of its changelogs."""

    at_ms: int
    lags: tuple[int, ...]


class PositionSample(NamedTuple):
    """Where a copy was at a moment (ms), and where its changelogs ended: sums of offsets."""

    at_ms: int
    position: int
    end: int


class Rates(NamedTuple):
    """Rates over every window up to a moment (ms)."""

    as_of_ms: int
    windows: tuple[RateWindow, ...]


_Sample = TypeVar("_Sample", EndSample, LagSample, PositionSample)


class PartitionSamples(msgspec.Struct):
    """Samples of a changelog partition's end, oldest first, and the rates last published.

    Older checkpoints have the fields by the names ``looks`` and ``told``, which therefore stay.
    """

    topic: str
    partition: int
    ends: list[EndSample] = msgspec.field(default_factory=list, name="looks")
    published: Rates | None = msgspec.field(default=None, name="told")

    def add(self, sample: EndSample) -> None:
        """Add a sample; the last one of a moment counts."""
        _insert(self.ends, sample)

    def prune(self) -> None:
        """Drop the samples that no window counts."""
        self.ends = kept(self.ends)

    def since_made(self) -> Sequence[EndSample]:
        """Return the samples since the log was made: one that ends before it did was made anew."""
        return _since_last(self.ends, lambda before, after: after.end < before.end)

    def rates(self) -> Rates | None:
        """Compute how fast it grows over each window up to its newest sample."""
        ends = self.since_made()
        if not ends:
            return None
        return Rates(
            ends[-1].at_ms,
            tuple(
                RateWindow(seconds, window_rate([], seconds), window_rate(counted, seconds))
                for seconds in WINDOWS_SECONDS
                for counted in [in_window(ends, seconds)]
            ),
        )


class CopySamples(msgspec.Struct):
    """What a copy reported, oldest first, of the changelogs that its newest report names.

    ``published``: the rates that were last published, which checkpoints name ``told``.
    """

    group: str
    process: str
    task: str
    partition: int
    changelogs: tuple[str, ...] = ()
    reports: list[LagSample] = []
    published: Rates | None = msgspec.field(default=None, name="told")

    def add(self, at_ms: int, lags: Mapping[str, int]) -> None:
        """Add a report: lags in offsets by changelog; the last one of a moment counts."""
        changelogs = tuple(sorted(lags))
        if changelogs != self.changelogs:
            if self.reports and at_ms < self.reports[-1].at_ms:
                return
            self.changelogs = changelogs
            self.reports.clear()
        _insert(self.reports, LagSample(at_ms, tuple(lags[topic] for topic in changelogs)))

    def prune(self) -> None:
        """Drop the reports that no window counts."""
        self.reports = kept(self.reports)

    def rates(self, partitions: Mapping[TopicPartition, PartitionSamples]) -> Rates | None:
        """Compute its rates over each window up to its newest report; None where none counts.

        Its position is the sum of its changelogs' ends at that moment, less its lags. A copy that
        lost more than half of its position started over, and its rates with it.
        """
        samples = [partitions.get(TopicPartition(name, self.partition)) for name in self.changelogs]
        logs = [one.since_made() for one in samples if one is not None]
        if len(logs) < len(samples):
            return None
        positions = []
        for report in self.reports:
            ends = [end for log in logs if (end := end_at(log, report.at_ms)) is not None]
            if len(ends) == len(logs):
                end = sum(ends)
                positions.append(PositionSample(report.at_ms, max(0, end - sum(report.lags)), end))
        path = _since_last(positions, lambda before, after: after.position * 2 < before.position)
        if not path:
            return None
        windows = []
        for seconds in WINDOWS_SECONDS:
            counted = in_window(path, seconds)
            position = window_rate([(one.at_ms, one.position) for one in counted], seconds)
            end_rate = window_rate([(one.at_ms, one.end) for one in counted], seconds)
            windows.append(RateWindow(seconds, position, end_rate))
        return Rates(path[-1].at_ms, tuple(windows))


def end_at(samples: Sequence[EndSample], at_ms: int) -> int | None:
    """Interpolate a log's end at a moment linearly between two samples.

    None before the first sample, and where the last one doesn't hold any more.
    """
    index = bisect_right(samples, at_ms, key=lambda sample: sample.at_ms)
    if not index:
        return None
    before = samples[index - 1]
    if index == len(samples):
        return before.end if at_ms - before.at_ms <= SAMPLE_HOLDS_MS else None
    after = samples[index]
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


def is_due(rates: Rates, published: Rates | None) -> bool:
    """Return whether rates are to be published: they changed, or a minute has passed."""
    if published is None:
        return True
    return rates.windows != published.windows or rates.as_of_ms - published.as_of_ms >= REPEATED_MS


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
