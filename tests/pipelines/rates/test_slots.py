"""What a slot publishes, withdraws and forgets."""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec

from caughtup.pipelines.rates.slots import FORGOTTEN_MS, OutputRecord, SlotState
from caughtup.pipelines.rates.state import (
    BUCKETS,
    SAMPLE_HOLDS_MS,
    CopySamples,
    EndSample,
    LagSample,
    PartitionSamples,
)
from tests.support.pipelines.rate_job import (
    CHANGELOG,
    COPY,
    MINUTE,
    OTHER,
    SECOND,
    START,
    WINDOWS,
    Job,
    ended,
    reported,
)


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
    assert job.take(reported(START + 2 * MINUTE, None)) == [OutputRecord(key, None)]
    assert job.take(reported(START + 3 * MINUTE, None)) == []


def test_an_incomplete_picture_has_no_rate() -> None:
    job = Job()
    assert job.take(reported(START, {CHANGELOG: 5})) == []  # the log has no sample
    job.take(ended(START + MINUTE, 50))
    assert job.take(reported(START + MINUTE, {CHANGELOG: 5, OTHER: 1})) == []
    too_late = START + MINUTE + SAMPLE_HOLDS_MS + 1
    assert job.take(reported(too_late, {CHANGELOG: 5})) == []  # no samples any more


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
    assert gone == OutputRecord(msgspec.json.encode(COPY), None)
    far = ended(newest + FORGOTTEN_MS + 2, 5, OTHER)
    assert OutputRecord(msgspec.json.encode([CHANGELOG, 1]), None) in job.take(far)
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


def test_of_two_samples_or_reports_of_one_moment_the_last_counts() -> None:
    partition = PartitionSamples(CHANGELOG, 1)
    copy = CopySamples("orders", "a", "0_1", 1)
    for number in (7, 9, 8):
        partition.add(EndSample(START, number))
        copy.add(START, {CHANGELOG: number})
    assert partition.ends == [EndSample(START, 8)]
    assert copy.reports == [LagSample(START, (8,))]


def test_a_report_that_names_other_changelogs_begins_anew_and_an_older_one_does_not_count() -> None:
    copy = CopySamples("orders", "a", "0_1", 1)
    copy.add(START, {CHANGELOG: 5})
    copy.add(START + SECOND, {CHANGELOG: 5, OTHER: 6})
    copy.add(START, {CHANGELOG: 4})
    assert (copy.changelogs, copy.reports) == (
        (CHANGELOG, OTHER),
        [LagSample(START + SECOND, (5, 6))],
    )


def test_a_slots_state_is_that_of_older_checkpoints() -> None:
    copy = {
        "group": "orders",
        "process": "a",
        "task": "0_1",
        "partition": 1,
        "changelogs": [CHANGELOG],
        "reports": [[START, [5]]],
        "told": [START, [[60, [1.0, 0.0, 2], [2.0, 0.0, 2]]]],
    }
    partition = {"topic": CHANGELOG, "partition": 1, "looks": [[START, 8]], "told": None}
    state = {"copies": [copy], "partitions": [partition], "newest_ms": START}
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=SlotState)
    assert decoded.partitions[0].ends == [EndSample(START, 8)]
    assert decoded.copies[0].published is not None
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(decoded)) == state
