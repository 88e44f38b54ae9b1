"""How members make up clients."""

from __future__ import annotations

import pytest

from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import (
    ClientMetadata,
    MemberSubscription,
    clients_of,
)
from tests.models.partition_assignor.building import RUNNING, UNKNOWN, task

ONE = ProcessId.of(1)
LONG_MAX = (1 << 63) - 1
P0, P1 = TopicPartition("in", 0), TopicPartition("in", 1)
READERS = {P0: task("0_0"), P1: task("0_1")}


def client(*members: MemberSubscription) -> ClientMetadata:
    """Make the one client of some members."""
    (made,) = clients_of(members).values()
    return made


def tasks(*texts: str) -> frozenset[TaskId]:
    return frozenset(map(task, texts))


def test_java_walks_short_names_by_their_last_letter_and_crowded_buckets_as_filled() -> None:
    """The hash code of one letter is its code unit; 16 buckets, so q shares that of a."""
    assert in_hash_map_order(["q", "b", "a", "p"]) == ["p", "q", "a", "b"]
    assert in_hash_map_order(["a", "b", "q", "p"]) == ["p", "a", "q", "b"]


def test_consumers_are_ordered_as_java_orders_strings() -> None:
    """Characters beyond U+FFFF take two code units, the first of which comes before U+FF5E."""
    names = ["\uff5e", "\U0001f600", "Z", "a"]
    made = client(*(MemberSubscription(name, ONE) for name in names))
    assert made.consumers == ["Z", "a", "\U0001f600", "\uff5e"]
    assert made.capacity == 4


def test_of_contradicting_consumers_the_last_one_met_counts_for_tasks() -> None:
    first = MemberSubscription("a", ONE, (P0,), {task("0_0"): 5})
    last = MemberSubscription("b", ONE, (P0, P1), {task("0_0"): 6, task("0_1"): 7})
    made = client(last, first)
    assert made.owner == {P0: "b", P1: "b"}
    assert made.offset_sums == {task("0_0"): 6, task("0_1"): 7}
    assert made.reported == {"a": (task("0_0"),), "b": (task("0_0"), task("0_1"))}


def test_of_contradicting_consumers_the_first_one_met_counts_for_the_process() -> None:
    made = client(
        MemberSubscription("b", ONE, tags={"zone": "b"}, end_point=("b", 2)),
        MemberSubscription("a", ONE, tags={"zone": "a"}, end_point=("a", 1)),
    )
    assert (made.tags, made.end_point) == ({"zone": "a"}, ("a", 1))


def test_processes_come_in_the_order_in_which_their_consumers_are_met() -> None:
    members = [
        MemberSubscription("c", ProcessId.of(1)),
        MemberSubscription("a", ProcessId.of(2)),
        MemberSubscription("b", ONE),
    ]
    assert list(clients_of(members)) == [ProcessId.of(2), ONE]


@pytest.mark.parametrize(
    ("racks", "rack"),
    [(["r1", "r1"], "r1"), (["r1", "r2"], None), (["r1", None], None), ([None, None], None)],
)
def test_a_process_has_a_rack_if_all_its_consumers_name_it(
    racks: list[str | None], rack: str | None
) -> None:
    made = client(
        *(MemberSubscription(str(number), ONE, rack=one) for number, one in enumerate(racks))
    )
    assert made.rack == rack


def test_what_is_owned_or_running_was_active_and_the_rest_was_followed() -> None:
    sums = {task("0_0"): 5, task("0_1"): RUNNING, task("1_0"): 0, task("9_9"): UNKNOWN}
    made = client(MemberSubscription("a", ONE, (P0,), sums))
    assert made.previous_tasks(READERS) == (tasks("0_0", "0_1"), tasks("1_0", "9_9"))


def test_partitions_that_no_task_reads_any_more_are_passed_over_unless_there_are_no_others() -> (
    None
):
    gone = TopicPartition("gone", 0)
    made = client(MemberSubscription("a", ONE, (gone, P1)))
    assert made.previous_tasks(READERS) == (tasks("0_1"), tasks())
    with pytest.raises(ScenarioError, match="no task reads what those of process"):
        client(MemberSubscription("a", ONE, (gone,))).previous_tasks(READERS)


@pytest.mark.parametrize(
    ("reported", "end", "lag"),
    [
        pytest.param(30, 100, 70, id="behind"),
        pytest.param(None, 100, 100, id="nothing restored"),
        pytest.param(RUNNING, 100, RUNNING, id="running"),
        pytest.param(UNKNOWN, 100, UNKNOWN, id="unknown"),
        pytest.param(101, 100, 100, id="beyond the end: a changelog that was recreated"),
        pytest.param(30, UNKNOWN, UNKNOWN, id="the end couldn't be had"),
        pytest.param(None, UNKNOWN, UNKNOWN, id="neither"),
        pytest.param(RUNNING, UNKNOWN, RUNNING, id="running, whatever the end"),
        pytest.param(-4, LONG_MAX, -(1 << 63) + 3, id="beyond what a Java long can hold"),
    ],
)
def test_the_lag_is_what_is_left_to_the_end(reported: int | None, end: int, lag: int) -> None:
    sums = {} if reported is None else {task("0_0"): reported}
    made = client(MemberSubscription("a", ONE, offset_sums=sums))
    assert made.lags({task("0_0"): end}) == {task("0_0"): lag}
