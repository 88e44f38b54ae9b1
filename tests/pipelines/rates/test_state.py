"""Rates of a slot, against all samples worked through anew."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.copies.catch_up_rates import FEWEST_SAMPLES
from caughtup.pipelines.rates.slots import EndOffsetSample, Event, PositionReport
from caughtup.pipelines.rates.state import BUCKETS, SAMPLE_HOLDS_MS
from tests.support.pipelines.rate_job import (
    CHANGELOG,
    COPY,
    OTHER,
    SECOND,
    START,
    WINDOWS,
    Job,
    ended,
    reported,
)

# What the job should say, from all samples at once and as plainly as possible.


def counted(samples: dict[int, Any], seconds: int) -> dict[int, Any]:
    if not samples:
        return {}
    newest, width = max(samples), seconds * SECOND // BUCKETS
    in_time = {at: sample for at, sample in samples.items() if at > newest - seconds * SECOND}
    return {
        at: sample
        for at, sample in sorted(in_time.items())
        if not any(at < other and at // width == other // width for other in in_time)
    }


def counted_anywhere(samples: dict[int, Any]) -> dict[int, Any]:
    kept: dict[int, Any] = {}
    for seconds in WINDOWS:
        kept |= counted(samples, seconds)
    return dict(sorted(kept.items()))


def interpolated(samples: dict[int, int], at: int) -> int | None:
    before = [ms for ms in samples if ms <= at]
    after = [ms for ms in samples if ms > at]
    if not before:
        return None
    last = max(before)
    if not after:
        return samples[last] if at - last <= SAMPLE_HOLDS_MS else None
    first = min(after)
    return samples[last] + round((at - last) / (first - last) * (samples[first] - samples[last]))


def slope(points: dict[int, int], seconds: int) -> float | None:
    if len(points) < FEWEST_SAMPLES or 2 * (max(points) - min(points)) < seconds * SECOND:
        return None
    span = max(points) - min(points)
    slopes = sorted(
        1000 * (points[b] - points[a]) / (b - a)
        for a, b in combinations(points, 2)
        if 2 * (b - a) >= span
    )
    half = len(slopes) // 2
    middle = slopes[half] if len(slopes) % 2 else (slopes[half - 1] + slopes[half]) / 2
    return pytest.approx(middle, abs=0.001)  # type: ignore[return-value]


@st.composite
def histories(draw: st.DrawFn) -> list[list[Event]]:
    """Samples and reports of up to a quarter of an hour and more, dealt to batches, some late."""
    times = st.integers(0, draw(st.sampled_from([90, 400, 1_200])) * 10)
    events: list[Event] = []
    for topic in (CHANGELOG, OTHER):
        end = 0
        for tick in sorted(draw(st.sets(times, min_size=1, max_size=60))):
            end += draw(st.integers(0, 1_000))
            events.append(ended(START + tick * 100, end, topic))
    for tick in sorted(draw(st.sets(times, min_size=1, max_size=60))):
        # Small lags: a position never falls to half by them.
        lags = {CHANGELOG: draw(st.integers(0, 5)), OTHER: draw(st.integers(0, 5))}
        events.append(reported(START + tick * 100, lags))
    shuffled = draw(st.permutations(events)) if draw(st.booleans()) else events
    cuts = sorted(draw(st.sets(st.integers(0, len(events)), max_size=5)))
    bounds = [0, *cuts, len(events)]
    return [list(shuffled[a:b]) for a, b in pairwise(bounds)]


@given(histories())
def test_what_was_written_last_follows_from_all_samples_at_once(batches: list[list[Event]]) -> None:
    job, seen, known, changed = Job(), [], {}, False
    for batch in batches:
        # Offsets tell the order in which records were written: here, in which they come.
        numbered = [msgspec.structs.replace(event, offset=n) for n, event in enumerate(batch)]
        job.take(*numbered)
        seen += batch
        changed = any(isinstance(event, PositionReport) for event in batch)
        if changed:
            known = copy_windows(seen)
    for topic in (CHANGELOG, OTHER):
        samples = {
            e.at_ms: e.end for e in seen if isinstance(e, EndOffsetSample) and e.topic == topic
        }
        for seconds in WINDOWS:
            points = counted(counted_anywhere(samples), seconds)
            rate = job.rate([topic, 1], seconds)
            assert rate["end_samples"] == len(points)
            assert rate["end_offset_per_second"] == slope(points, seconds)
    for seconds, (positions, ends) in known.items():
        rate = job.rate(COPY, seconds)
        assert (rate["samples"], rate["end_samples"]) == (len(positions), len(ends))
        assert rate["position_per_second"] == slope(positions, seconds)
        assert rate["end_offset_per_second"] == slope(ends, seconds)


def copy_windows(seen: list[Event]) -> dict[int, tuple[dict[int, int], dict[int, int]]]:
    """Return the samples of the copy's position and of its end in each window, if it has any."""
    samples = [
        counted_anywhere(
            {e.at_ms: e.end for e in seen if isinstance(e, EndOffsetSample) and e.topic == t}
        )
        for t in (CHANGELOG, OTHER)
    ]
    reports = {e.at_ms: e.lags for e in seen if isinstance(e, PositionReport)}
    places: dict[int, tuple[int, int]] = {}
    for at, lags in counted_anywhere(reports).items():
        found = [interpolated(each, at) for each in samples]
        if None not in found:
            end = sum(one for one in found if one is not None)
            position = max(0, end - sum(lags.values()))
            last = places[max(places)][0] if places else 0
            if position * 2 < last:
                places.clear()
            places[at] = (position, end)
    if not places:
        return {}
    windows = {}
    for seconds in WINDOWS:
        these = counted(places, seconds)
        windows[seconds] = (
            {at: position for at, (position, _) in these.items()},
            {at: end for at, (_, end) in these.items()},
        )
    return windows
