"""What the leader takes for the end of a task's state."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId
from caughtup.models.partition_assignor.end_offset_sums import sum_end_offsets, unknown_sums
from caughtup.models.partition_assignor.task_partitions import group_partitions
from tests.models.partition_assignor.building import member, rebalance, task
from tests.support.rebalance_parsing import parse_rebalance

LONG_MAX = (1 << 63) - 1
TWO_STORES = {"0": {"sources": ["in"], "changelogs": ["a", "b"]}}
A_TABLE = {"0": {"sources": ["table"], "source_changelogs": ["table"]}}


def sums(**more: Any) -> dict[TaskId, int] | None:
    """Sum the end offsets of a rebalance with one task."""
    scenario = parse_rebalance(rebalance({"a": member(1)}, tasks=1, **more))
    tasks = group_partitions(scenario.subtopologies, scenario.partitions)
    found = sum_end_offsets(scenario, tasks.changelogs)
    return None if found is None else dict(found)


def only(total: int) -> dict[TaskId, int]:
    return {task("0_0"): total}


def test_the_ends_of_all_changelogs_are_added() -> None:
    assert sums(subtopologies=TWO_STORES, end_offsets={"a-0": 7, "b-0": 30}) == only(37)


def test_a_sum_that_a_java_long_cannot_hold_stays_at_its_greatest() -> None:
    ends = {"a-0": LONG_MAX, "b-0": 1}
    assert sums(subtopologies=TWO_STORES, end_offsets=ends) == only(LONG_MAX)


def test_a_changelog_that_was_just_created_counts_as_empty_and_is_not_asked_for() -> None:
    new = sums(subtopologies=TWO_STORES, end_offsets={"a-0": 7}, new_topics=["b"])
    assert new == only(7)


def test_a_source_that_serves_as_changelog_ends_where_the_group_has_committed() -> None:
    """KAFKA-10085: what is in the topic beyond that isn't in anybody's store."""
    table = {"subtopologies": A_TABLE, "partitions": {"table": 1}, "end_offsets": {"table-0": 500}}
    assert sums(**table, committed={"table-0": 90}) == only(90)
    assert sums(**table, committed={}) == only(0)


def test_a_table_too_narrow_for_a_task_counts_as_empty() -> None:
    found = sums(
        subtopologies={"0": {"sources": ["wide", "table"], "source_changelogs": ["table"]}},
        partitions={"wide": 2, "table": 1},
        committed={"table-0": 90},
    )
    assert found == {task("0_0"): 90, task("0_1"): 0}


def test_without_an_answer_there_are_no_sums() -> None:
    assert sums(end_offsets=None) is None
    assert sums(subtopologies=A_TABLE, partitions={"table": 1}, committed=None) is None


def test_where_nobody_is_asked_nothing_fails() -> None:
    assert sums(committed=None) == only(1_000)
    assert sums(end_offsets=None, new_topics=["app-store-changelog"]) == only(0)
    assert sums(subtopologies={"0": {"sources": ["in"]}}, end_offsets=None) == {}


def test_an_end_that_is_not_given_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"end_offsets\.app-store-changelog-0: is missing"):
        sums(end_offsets={})


def test_what_kafka_goes_on_with_after_a_failure_is_unknown() -> None:
    assert unknown_sums({task("0_0"): ()}) == only(-3)
