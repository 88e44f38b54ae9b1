"""Whole rebalances: what each member is given."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId
from caughtup.models.partition_assignor.assignment import sum_end_offsets, unknown_sums
from caughtup.models.partition_assignor.task_partitions import group_partitions
from tests.models.partition_assignor.building import (
    NOW_MS,
    PROBE_MS,
    RUNNING,
    SOURCE,
    active,
    assign,
    member,
    process,
    rebalance,
    standby,
    task,
)
from tests.support.rebalance_parsing import parse_rebalance

LONG_MAX = (1 << 63) - 1


def test_a_member_alone_is_given_everything_with_its_partitions_in_order() -> None:
    given = assign({"a": member(1)}, tasks=3)["a"]
    assert active(given) == ["0_0", "0_1", "0_2"]
    assert given.partitions == tuple((SOURCE, partition) for partition in range(3))
    assert given.next_rebalance_ms is None


def test_active_tasks_stand_in_the_order_of_their_partitions_each_as_often_as_it_reads() -> None:
    given = assign(
        {"a": member(1)},
        subtopologies={"0": {"sources": ["b", "y"]}, "1": {"sources": ["c"]}},
        partitions={"b": 2, "y": 1, "c": 1},
    )["a"]
    assert [str(one) for one in given.partitions] == ["b-0", "b-1", "c-0", "y-0"]
    assert active(given) == ["0_0", "0_1", "1_0", "0_0"]


def test_a_task_is_held_back_until_its_owner_lets_go_of_it() -> None:
    """Two processes, both caught up, so one task goes to the other one; at once, it can't."""
    given = assign({"a": member(1, (0, 1)), "b": member(2, sums={"0_1": 990})})
    assert (active(given["a"]), given["a"].next_rebalance_ms) == (["0_0"], None)
    assert (active(given["b"]), given["b"].next_rebalance_ms) == ([], 0)
    assert given["b"].held_back == ((0, 1),)
    assert standby(given["b"]) == ["0_1"], "it stays what it was, so that its store stays open"


def test_a_client_without_a_standby_gets_none_for_a_task_held_back() -> None:
    given = assign({"a": member(1, (0, 1), {"0_0": 1_000, "0_1": 1_000}), "b": member(2)}, tasks=2)
    assert standby(given["b"]) == ["0_1"], "a warm-up"
    without_state = assign(
        {"a": member(1, (0, 1)), "b": member(2)}, subtopologies={"0": {"sources": [SOURCE]}}
    )
    assert without_state["b"].held_back == ((0, 1),)
    assert (active(without_state["b"]), standby(without_state["b"])) == ([], [])


def test_a_task_that_has_no_state_any_more_is_followed_by_nobody() -> None:
    members = {"a": member(1, (0, 1)), "b": member(2, sums={"0_1": 990})}
    given = assign(members, subtopologies={"0": {"sources": [SOURCE]}})
    assert (given["b"].held_back, standby(given["b"])) == (((0, 1),), [])


def test_a_task_between_two_threads_of_a_process_is_held_back_as_well() -> None:
    given = assign({"a": member(1, (0, 1)), "b": member(1)})
    assert (active(given["a"]), active(given["b"])) == (["0_0"], [])
    assert given["b"].next_rebalance_ms == 0
    assert standby(given["b"]) == [], "its process runs it, and never followed it"


def test_a_task_with_a_partition_of_somebody_else_is_held_back_whole() -> None:
    given = assign(
        {
            "a": member(1) | {"owned": [["x", 0]]},
            "b": member(2) | {"owned": [["x", 1], ["y", 1], ["y", 0]]},
        },
        subtopologies={"0": {"sources": ["x", "y"]}},
        partitions={"x": 2, "y": 2},
    )
    assert (active(given["a"]), active(given["b"])) == ([], ["0_1", "0_1"])
    assert given["a"].held_back == ((0, 0),)


def test_the_leaders_first_thread_asks_for_the_probing_rebalance() -> None:
    members = {"c": member(1), "b": member(1, (0,)), "a": member(1, (1,)), "d": member(3)}
    given = assign(members)
    assert standby(given["d"]) == ["0_1"], "a warm-up, which is why there is to be a next one"
    assert {name: one.next_rebalance_ms for name, one in given.items()} == {
        "a": PROBE_MS,
        "b": None,
        "c": None,
        "d": None,
    }
    elsewhere = assign(members, leader=process(3))
    assert elsewhere["d"].next_rebalance_ms == PROBE_MS
    assert elsewhere["a"].next_rebalance_ms is None


def test_nobody_probes_if_something_is_held_back_from_the_leaders_first_thread() -> None:
    """It asks for the next rebalance at once, so the probing one needn't be scheduled."""
    members = {"a": member(1), "b": member(1, (0, 1)), "c": member(2)}
    given = assign(members, tasks=4)
    assert given["a"].held_back
    assert {name: one.next_rebalance_ms for name, one in given.items()} == {
        "a": 0,
        "b": None,
        "c": None,
    }


def test_a_leader_that_is_no_member_schedules_no_probing_rebalance() -> None:
    given = assign({"a": member(1, (0, 1)), "b": member(2)}, leader=process(9))
    assert standby(given["b"]) == ["0_1"]
    assert all(one.next_rebalance_ms is None for one in given.values())


def test_a_deadline_beyond_a_java_long_is_in_the_past() -> None:
    members = {"a": member(1, (0, 1)), "b": member(2)}
    given = assign(members, config={"probing.rebalance.interval.ms": LONG_MAX})
    assert given["a"].next_rebalance_ms == NOW_MS - (1 << 63) - 1
    never = assign(members, config={"probing.rebalance.interval.ms": LONG_MAX - NOW_MS})
    assert never["a"].next_rebalance_ms is None


def test_without_end_offsets_everybody_keeps_what_he_has_and_the_leader_tries_again() -> None:
    members = {"a": member(1, (0, 1, 2, 3)), "b": member(2, sums={"0_3": 1_000})}
    given = assign(members, tasks=4, end_offsets=None)
    assert active(given["a"]) == ["0_0", "0_1", "0_2", "0_3"]
    assert given["a"].next_rebalance_ms == PROBE_MS, "a whole interval later, whatever is logged"
    assert active(assign(members, tasks=4)["b"]) == [], "else 0_3 would be on its way there"
    assert assign(members, tasks=4)["b"].held_back


def test_the_sticky_assignor_takes_no_notice_of_missing_end_offsets() -> None:
    members = {"a": member(1, (0, 1, 2, 3)), "b": member(2)}
    failed = assign(members, tasks=4, assignor="sticky", end_offsets=None)
    assert failed == assign(members, tasks=4, assignor="sticky")
    assert len(failed["b"].held_back) == 2
    assert failed["a"].next_rebalance_ms is None


def test_older_members_are_written_to_in_their_version() -> None:
    old = assign({"a": member(1, version=7), "b": member(2, (0, 1))}, leader=process(2))
    assert old["b"].next_rebalance_ms == PROBE_MS
    members = {"a": member(1, end_point="h:1", tags={"zone": "x"}, version=10), "b": member(2)}
    given = assign(members)
    assert given["b"].active_by_host == {"h:1": [(SOURCE, 0)]}
    assert given["b"].standby_by_host == {"h:1": []}


def test_hosts_have_what_was_decided_even_where_it_is_held_back() -> None:
    members = {
        "a": member(1, (0, 1), end_point="http://first:80"),
        "b": member(2, sums={"0_1": 1_000}, end_point="[::1]:81"),
    }
    given = assign(members, config={"num.standby.replicas": 1})
    assert given["b"].held_back == ((0, 1),)
    assert given["a"].active_by_host == given["b"].active_by_host
    assert given["b"].to_dict()["partitions_by_host"] == {
        "::1:81": [[SOURCE, 1]],
        "first:80": [[SOURCE, 0]],
    }
    assert given["b"].to_dict()["standby_partitions_by_host"] == {
        "::1:81": [[SOURCE, 0]],
        "first:80": [[SOURCE, 1]],
    }


def test_of_processes_at_one_end_point_the_last_one_in_the_leaders_hash_map_counts() -> None:
    """Process 2 has the greater hash code, whoever was met first."""
    for names in ("ab", "ba"):
        members = {
            names[0]: member(1, (0,), end_point="h:1"),
            names[1]: member(2, (1,), end_point="h:1"),
        }
        assert assign(members)[names[0]].active_by_host == {"h:1": [(SOURCE, 1)]}


def test_an_assignment_is_written_as_the_wire_has_it() -> None:
    given = assign({"a": member(1, (0, 1)), "b": member(2, sums={"0_1": 1_000})})["b"]
    assert given.to_dict() == {
        "partitions": [],
        "active": [],
        "standby": {"0_1": [[SOURCE, 1]]},
        "next_rebalance_ms": 0,
        "error_code": 0,
    }


def test_a_running_report_alone_makes_no_owner() -> None:
    """What isn't owned needn't be revoked."""
    given = assign({"a": member(1, sums={"0_0": RUNNING, "0_1": RUNNING}), "b": member(2)})
    assert active(given["a"]) == ["0_0", "0_1"]


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
