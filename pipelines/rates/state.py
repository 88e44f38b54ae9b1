"""Compute rates over windows from positions of copies and end offsets of changelogs. Pure.

Of the samples of the last 15 minutes only those are kept that a window uses: the newest in each of
its twenty buckets. So a window uses as many samples however often an application reports, the state
is bounded, and the result does not depend on how records are divided into batches.
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

#: The buckets of a window, which has at most one sample more.
BUCKETS = 20
#: How long an end offset counts as current (ms). Unchanged ones are repeated each minute; after
#: twice that time they are no longer sampled.
SAMPLE_HOLDS_MS = 2 * REPEATED_MS


class EndSample(NamedTuple):
    """The end offset of a changelog partition at a time (ms)."""

    at_ms: int
    end: int


class LagSample(NamedTuple):
    """The lag of a copy in each of its changelogs, in offsets, at a time (ms)."""

    at_ms: int
    lags: tuple[int, ...]


class PositionSample(NamedTuple):
    """The sums of a copy's positions and of its changelogs' end offsets at a time (ms)."""

    at_ms: int
    position: int
    end: int


class WindowRates(NamedTuple):
    """Rates over every window that ends at a time (ms)."""

    as_of_ms: int
    windows: tuple[RateWindow, ...]


_Sample = TypeVar("_Sample", EndSample, LagSample, PositionSample)


class PartitionSamples(msgspec.Struct):
    """Samples of a changelog partition's end offset, oldest first, and the rates last published.

    Checkpoints have the fields under the names ``looks`` and ``told``.
    """

    topic: str
    partition: int
    ends: list[EndSample] = msgspec.field(default_factory=list, name="looks")
    published: WindowRates | None = msgspec.field(default=None, name="told")

    def add(self, sample: EndSample) -> None:
        """Add a sample; it replaces one of the same time."""
        _insert(self.ends, sample)

    def prune(self) -> None:
        """Drop the samples that no window uses."""
        self.ends = used_samples(self.ends)

    def since_made(self) -> Sequence[EndSample]:
        """Return the samples since the topic was created: a smaller end offset means recreated."""
        return _since_last(self.ends, lambda before, after: after.end < before.end)

    def rates(self) -> WindowRates | None:
        """Compute the rate of the end offset over each window; None without samples."""
        ends = self.since_made()
        if not ends:
            return None
        return WindowRates(
            ends[-1].at_ms,
            tuple(
                RateWindow(seconds, window_rate([], seconds), window_rate(counted, seconds))
                for seconds in WINDOWS_SECONDS
                for counted in [in_window(ends, seconds)]
            ),
        )


class CopySamples(msgspec.Struct):
    """The lags that a copy reported, oldest first, for the changelogs in its newest report.

    ``published``: the rates that were last published (``told`` in checkpoints).
    """

    group: str
    process: str
    task: str
    partition: int
    changelogs: tuple[str, ...] = ()
    reports: list[LagSample] = []
    published: WindowRates | None = msgspec.field(default=None, name="told")

    def add(self, at_ms: int, lags: Mapping[str, int]) -> None:
        """Add a report (lags in offsets by changelog); it replaces one of the same time."""
        changelogs = tuple(sorted(lags))
        if changelogs != self.changelogs:
            if self.reports and at_ms < self.reports[-1].at_ms:
                return
            self.changelogs = changelogs
            self.reports.clear()
        _insert(self.reports, LagSample(at_ms, tuple(lags[topic] for topic in changelogs)))

    def prune(self) -> None:
        """Drop the reports that no window uses."""
        self.reports = used_samples(self.reports)

    def rates(self, partitions: Mapping[TopicPartition, PartitionSamples]) -> WindowRates | None:
        """Compute the copy's rates over each window; None if they are unknown.

        The position is the sum of the changelogs' end offsets at the time of a report, minus the
        lags. A copy that lost more than half of its position has restarted; older samples do not
        count then.
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
        return WindowRates(path[-1].at_ms, tuple(windows))


def end_at(samples: Sequence[EndSample], at_ms: int) -> int | None:
    """Return a log's end offset at a time (ms), interpolated linearly between two samples.

    None before the first sample, and more than 2 minutes after the last one.
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
    """Return the samples that a window (s) up to the newest sample uses, oldest first."""
    if not samples:
        return []
    width_ms = seconds * 1000 // BUCKETS
    begin_ms = samples[-1].at_ms - seconds * 1000
    first = bisect_right(samples, begin_ms, key=lambda sample: sample.at_ms)
    return list({one.at_ms // width_ms: one for one in samples[first:]}.values())


def used_samples(samples: Sequence[_Sample]) -> list[_Sample]:
    """Return the samples that any window uses, or may use later, oldest first."""
    counted = {one.at_ms: one for each in WINDOWS_SECONDS for one in in_window(samples, each)}
    return [counted[at_ms] for at_ms in sorted(counted)]


def is_due(rates: WindowRates, published: WindowRates | None) -> bool:
    """Return whether to publish rates: they changed, or a minute has passed."""
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
