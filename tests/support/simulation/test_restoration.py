"""State restoration: the document on standby tasks as tests, and what Kafka 4.3 does instead."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.ids import TaskId
from tests.support.simulation.restoration import (
    Changelog,
    Restoration,
    reported_sum,
    restoration,
    running,
)

COUNTS = Changelog(start_offset=100, end_offset=50_000)
A, B, C = TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)


def test_a_store_goes_on_from_its_checkpoint() -> None:
    assert restoration(COUNTS, 42_000) == Restoration(42_000, 8_000, "checkpoint")


def test_a_standby_shortens_what_its_successor_has_to_restore() -> None:
    """The document's example: the task arrives where its standby built part of the store."""
    without = restoration(COUNTS, None)
    with_standby = restoration(COUNTS, 49_000)
    assert (without.offsets, with_standby.offsets) == (49_900, 1_000)


def test_a_store_without_a_checkpoint_is_read_from_the_beginning() -> None:
    assert restoration(COUNTS, None) == Restoration(100, 49_900, "no_checkpoint")


@pytest.mark.parametrize("checkpoint", [0, 99, 50_001])
def test_a_checkpoint_that_the_changelog_does_not_have_starts_over(checkpoint: int) -> None:
    assert restoration(COUNTS, checkpoint) == Restoration(100, 49_900, "out_of_range")


@pytest.mark.parametrize("checkpoint", [100, 50_000])
def test_a_checkpoint_at_either_end_of_the_changelog_is_good(checkpoint: int) -> None:
    assert restoration(COUNTS, checkpoint).why == "checkpoint"


def test_a_store_in_memory_is_restored_whole_whatever_was_written_down() -> None:
    assert restoration(COUNTS, 42_000, persistent=False) == Restoration(100, 49_900, "in_memory")


def test_under_exactly_once_files_without_a_checkpoint_are_not_trusted() -> None:
    assert restoration(COUNTS, None, exactly_once=True, has_files=True).why == "unclean"
    assert restoration(COUNTS, None, exactly_once=True).why == "no_checkpoint"
    assert restoration(COUNTS, None, has_files=True).why == "no_checkpoint"


def test_a_changelog_of_its_own_has_no_limit_but_its_end() -> None:
    """The document found the limit of a standby to be Long.MAX for every real changelog."""
    assert COUNTS.restore_end == 50_000


@pytest.mark.parametrize(("committed", "limit"), [(0, 0), (30_000, 30_000), (60_000, 50_000)])
def test_a_source_topic_is_restored_up_to_the_commit_only(committed: int, limit: int) -> None:
    source = Changelog(start_offset=0, end_offset=50_000, committed=committed)
    assert source.restore_end == limit
    assert restoration(source, None).offsets == limit


@settings(print_blob=True, deadline=None)
@given(
    bounds=st.tuples(st.integers(0, 1_000), st.integers(0, 1_000)).map(sorted),
    checkpoint=st.integers(-1, 1_100) | st.none(),
    committed=st.integers(0, 1_100) | st.none(),
    persistent=st.booleans(),
)
def test_a_restoration_begins_within_the_log_and_ends_at_its_end(
    bounds: list[int], checkpoint: int | None, committed: int | None, persistent: bool
) -> None:
    log = Changelog(*bounds, committed)
    todo = restoration(log, checkpoint, persistent=persistent)
    assert log.start_offset <= todo.begins_at <= log.end_offset
    assert todo.begins_at + todo.offsets == max(log.restore_end, todo.begins_at)


def test_an_active_that_restores_is_a_previous_standby_and_not_a_previous_active() -> None:
    assert reported_sum(restored=True, active=True, offset_sum=500) == -2
    assert reported_sum(restored=False, active=True, offset_sum=500) == 500
    assert reported_sum(restored=True, active=False, offset_sum=500) == 500


def test_without_a_state_updater_one_store_holds_up_the_whole_thread() -> None:
    """The document's answer to whether standbys shorten the time until a topology runs."""
    assert running({A: True, B: False, C: True}, state_updater=False) == set()
    assert running({A: True, B: True, C: True}, state_updater=False) == {A, B, C}


def test_with_a_state_updater_each_task_runs_as_soon_as_it_can() -> None:
    assert running({A: True, B: False, C: True}) == {A, C}
