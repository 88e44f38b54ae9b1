"""Rates of a slot, against all samples worked through anew, and how what is known is forgotten."""

from __future__ import annotations

import json
from itertools import combinations, pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.catch_up_rates import FEWEST_SAMPLES
from caughtup.pipelines.rate_records import Ended, Event, Reported
from caughtup.pipelines.rate_slots import FORGOTTEN_MS, Output, Slot, SlotState
from caughtup.pipelines.rate_state import BUCKETS, LOOK_HOLDS_MS

START = 1_800_000_000_000
SECOND = 1_000
MINUTE = 60 * SECOND
CHANGELOG = "orders-counts-changelog"
OTHER = "orders-sums-changelog"
COPY = ["orders", "a", "0_1"]
WINDOWS = (60, 300, 900)


def ended(at_ms: int, end: int | None, topic: str = CHANGELOG, offset: int = 0) -> Ended:
    return Ended(topic, 1, offset or at_ms, at_ms, end)


def reported(at_ms: int, lags: dict[str, int] | None, offset: int = 0) -> Reported:
    return Reported(*COPY, 1, offset or at_ms, at_ms, lags)


class Job:
    """One slot, its state packed and unpacked between batches; what was written last, by key."""

    def __init__(self) -> None:
        self.saved: bytes | None = None
        self.written: dict[str, Any] = {}

    def take(self, *events: Event, before_ms: int = 0) -> list[Output]:
        slot = self._slot()
        return self._keep(slot, list(slot.take(events, before_ms)))

    def forget(self, before_ms: int) -> list[Output]:
        slot = self._slot()
        return self._keep(slot, list(slot.forget(before_ms)))

    def rate(self, key: list[Any], seconds: int = 60) -> dict[str, Any]:
        windows = {each["seconds"]: each for each in self.written[json.dumps(key)]["windows"]}
        found: dict[str, Any] = windows[seconds]
        return found

    def _slot(self) -> Slot:
        state = msgspec.msgpack.decode(self.saved, type=SlotState) if self.saved else SlotState()
        return Slot(state, 10)

    def _keep(self, slot: Slot, written: list[Output]) -> list[Output]:
        self.saved = None if slot.state is None else msgspec.msgpack.encode(slot.state)
        for key, value in written:
            self.written[json.dumps(json.loads(key))] = value and json.loads(value)
        return written


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


def interpolated(looks: dict[int, int], at: int) -> int | None:
    before = [ms for ms in looks if ms <= at]
    after = [ms for ms in looks if ms > at]
    if not before:
        return None
    last = max(before)
    if not after:
        return looks[last] if at - last <= LOOK_HOLDS_MS else None
    first = min(after)
    return looks[last] + round((at - last) / (first - last) * (looks[first] - looks[last]))


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
    """Looks and reports of up to a quarter of an hour and more, dealt to batches, some late."""
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
        changed = any(isinstance(event, Reported) for event in batch)
        if changed:
            known = copy_windows(seen)
    for topic in (CHANGELOG, OTHER):
        looks = {e.at_ms: e.end for e in seen if isinstance(e, Ended) and e.topic == topic}
        for seconds in WINDOWS:
            points = counted(counted_anywhere(looks), seconds)
            told = job.rate([topic, 1], seconds)
            assert told["end_samples"] == len(points)
            assert told["end_offset_per_second"] == slope(points, seconds)
    for seconds, (positions, ends) in known.items():
        told = job.rate(COPY, seconds)
        assert (told["samples"], told["end_samples"]) == (len(positions), len(ends))
        assert told["position_per_second"] == slope(positions, seconds)
        assert told["end_offset_per_second"] == slope(ends, seconds)


def copy_windows(seen: list[Event]) -> dict[int, tuple[dict[int, int], dict[int, int]]]:
    """Give the samples of the copy's position and of its end in each window, if it has any."""
    looks = [
        counted_anywhere({e.at_ms: e.end for e in seen if isinstance(e, Ended) and e.topic == t})
        for t in (CHANGELOG, OTHER)
    ]
    reports = {e.at_ms: e.lags for e in seen if isinstance(e, Reported)}
    places: dict[int, tuple[int, int]] = {}
    for at, lags in counted_anywhere(reports).items():
        found = [interpolated(each, at) for each in looks]
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


def minute_of_reports(job: Job, begin_ms: int, lag: int = 1_000) -> None:
    """A log that grows by 10 a second, and a copy that stays behind it by as much."""
    for step in range(0, 61, 5):
        at_ms = begin_ms + step * SECOND
        job.take(ended(at_ms, 100_000 + (at_ms - START) // 100), reported(at_ms, {CHANGELOG: lag}))


def test_a_copy_that_started_over_has_no_rate_from_before() -> None:
    job = Job()
    minute_of_reports(job, START)
    assert job.rate(COPY)["position_per_second"] == 10
    minute_of_reports(job, START + MINUTE, lag=99_000)
    windows = [job.rate(COPY, seconds) for seconds in WINDOWS]
    assert [window["samples"] for window in windows] == [12, 5, 2]
    assert windows[0]["position_per_second"] == 10


def test_a_log_that_was_made_anew_has_no_growth_from_before() -> None:
    job = Job()
    minute_of_reports(job, START)
    job.take(ended(START + 2 * MINUTE, 5))
    assert job.rate([CHANGELOG, 1], 900)["end_samples"] == 1


def test_an_active_that_runs_and_a_copy_that_is_gone_are_withdrawn_once() -> None:
    job = Job()
    minute_of_reports(job, START)
    key = msgspec.json.encode(COPY)
    assert job.take(reported(START + 2 * MINUTE, None)) == [Output(key, None)]
    assert job.take(reported(START + 3 * MINUTE, None)) == []


def test_an_incomplete_picture_has_no_rate() -> None:
    job = Job()
    assert job.take(reported(START, {CHANGELOG: 5})) == []  # nobody told where the log ends
    job.take(ended(START + MINUTE, 50))
    assert job.take(reported(START + MINUTE, {CHANGELOG: 5, OTHER: 1})) == []
    too_late = START + MINUTE + LOOK_HOLDS_MS + 1
    assert job.take(reported(too_late, {CHANGELOG: 5})) == []  # nobody looks any more


def test_what_does_not_change_is_written_once_a_minute() -> None:
    job = Job()
    written = []
    for second in range(0, 2_000, 45):
        at_ms = START + second * SECOND
        out = job.take(ended(at_ms, 70), reported(at_ms, {CHANGELOG: 7}))
        written.append((second, sum(json.loads(key) == COPY for key, _ in out)))
    late = [second for second, count in written if count and second > 1_000]
    assert {after - before for before, after in pairwise(late)} == {90}


def test_only_changelogs_are_followed_and_those_that_a_report_names() -> None:
    job = Job()
    assert job.take(ended(START, 10, "payments")) == []
    written = job.take(ended(START, 10, "payments"), reported(START, {"payments": 3}))
    assert [json.loads(key) for key, _ in written] == [["payments", 1], COPY]


def test_what_has_no_news_is_forgotten_by_the_slots_own_time_and_by_the_streams() -> None:
    job = Job()
    minute_of_reports(job, START)
    newest = START + MINUTE
    assert job.forget(newest) == []
    (gone,) = job.take(ended(newest + 1, 101_000), before_ms=newest + 1)[:1]
    assert gone == Output(msgspec.json.encode(COPY), None)
    far = ended(newest + FORGOTTEN_MS + 2, 5, OTHER)
    assert Output(msgspec.json.encode([CHANGELOG, 1]), None) in job.take(far)
    assert [json.loads(key) for key, _ in job.forget(far.at_ms + 1)] == [[OTHER, 1]]
    assert job.saved is None


def test_the_state_is_bounded_however_often_somebody_reports() -> None:
    job = Job()
    size = 0
    for minute in range(40):
        events = [
            event
            for tick in range(600)
            for at_ms in [START + minute * MINUTE + tick * 100]
            for event in (ended(at_ms, at_ms - START), reported(at_ms, {CHANGELOG: 100}))
        ]
        job.take(*events)
        assert job.saved is not None
        size = max(size, len(job.saved))
    assert size < 3 * (BUCKETS + 2) * 2 * 20
