"""How streams fare: late by their own measure, and never where they ended as told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.pipeline_progress import (
    MOST_STREAMS,
    STATUSES,
    StreamProgress,
    StreamProgressTable,
)
from caughtup.models.records.fields import changed
from caughtup.models.records.pipeline_progress import STATES, ProgressRecord, State

HEARD = 1_000_000
BATCH = ProgressRecord(1, "running", trigger_seconds=100.0, batch=7, batch_seconds=4.0)
RUNNING = StreamProgress(HEARD, BATCH)

seconds = st.none() | st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("trigger", "batch", "limit"),
    [
        (100.0, 4.0, 300),
        (100.0, None, 300),
        (100.0, 250.0, 750),  # batches that take longer than the trigger
        (1.0, 0.5, 60),  # no less than a minute
        (None, None, 1800),  # once: one batch, of unknown length
        (None, 2000.0, 6000),
    ],
)
def test_a_stream_is_late_after_three_triggers_or_three_of_its_batches(
    trigger: float | None, batch: float | None, limit: int
) -> None:
    reported = StreamProgress(HEARD, changed(BATCH, trigger_seconds=trigger, batch_seconds=batch))
    assert reported.status(HEARD + 1000 * limit) == "running"
    assert reported.status(HEARD + 1000 * limit + 1) == "late"


@pytest.mark.parametrize(("trigger", "limit"), [(10.0, 600), (100.0, 600), (1000.0, 3000)])
def test_the_first_batch_may_take_ten_minutes(trigger: float, limit: int) -> None:
    begun = StreamProgress(HEARD, ProgressRecord(1, "running", trigger))
    assert begun.status(HEARD + 1000 * limit) == "running"
    assert begun.status(HEARD + 1000 * limit + 1) == "late"


@pytest.mark.parametrize("state", ["stopped", "failed"])
def test_a_stream_that_ended_is_never_late(state: State) -> None:
    assert StreamProgress(HEARD, changed(BATCH, state=state)).status(HEARD + 10**12) == state


@given(st.sampled_from(STATES), seconds, seconds, st.integers(0, 10**10), st.integers(0, 10**10))
@settings(print_blob=True)
def test_once_late_a_stream_stays_late_until_it_is_heard_again(
    state: State, trigger: float | None, batch: float | None, earlier: int, more: int
) -> None:
    reported = StreamProgress(HEARD, ProgressRecord(1, state, trigger, batch_seconds=batch))
    before, after = reported.status(HEARD + earlier), reported.status(HEARD + earlier + more)
    assert {before, after} <= set(STATUSES)
    assert reported.status(HEARD) == state
    assert before == after or (before, after) == ("running", "late")


def test_the_newest_counts_and_streams_come_in_order() -> None:
    progress = StreamProgressTable()
    for name in ("rates", "history", "replay"):
        progress.apply(name, RUNNING)
    newest = RUNNING._replace(heard_ms=HEARD + 1)
    progress.apply("history", newest)
    progress.apply("replay", None)
    progress.apply("unknown", None)
    assert list(progress.streams()) == [("history", newest), ("rates", RUNNING)]


def test_beyond_the_most_no_stream_is_new() -> None:
    progress = StreamProgressTable()
    for number in range(MOST_STREAMS):
        assert progress.apply(f"s{number}", StreamProgress(5, ProgressRecord(1, "running")))
    assert not progress.apply("more", StreamProgress(5, ProgressRecord(1, "running")))
    assert progress.apply("s0", StreamProgress(6, ProgressRecord(1, "stopped")))
    assert progress.apply("s0", None)
    assert progress.apply("more", StreamProgress(5, ProgressRecord(1, "running")))
    assert len(list(progress.streams())) == MOST_STREAMS


def test_rows_are_added_up_once_a_batch_however_often_it_is_told() -> None:
    table = StreamProgressTable()
    for batch, rows in ((7, 10), (7, 10), (8, 5), (8, 5), (9, None), (0, 3)):
        table.apply("history", RUNNING._replace(record=changed(BATCH, batch=batch, rows=rows)))
    assert table.rows("history") == 18
    assert table.rows("rates") == 0
    table.apply("history", None)
    assert table.rows("history") == 0
