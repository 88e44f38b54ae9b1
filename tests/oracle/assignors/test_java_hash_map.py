"""The order of a java.util.HashMap's keys, against Java's own, crowded buckets included."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignors.java.hash_map import JavaHashMap, in_hash_order, task_hash_code
from caughtup.models.assignors.java.tree_bin import JavaTreeBin
from caughtup.models.ids import TaskId
from tests.support.sizes import daily

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("java collections")]

#: One subtopology up and 31 partitions down is the same hash code.
COLLIDING = [TaskId(subtopology, 31 * (19 - subtopology)) for subtopology in range(20)]
SPREAD = [TaskId(0, partition) for partition in range(60)]


def meeting(buckets: int, subtopology: int) -> list[TaskId]:
    """Find tasks that share a bucket of every table up to that size, with different hash codes."""
    codes = {
        partition: (29_791 + 961 * subtopology + 31 * partition) % (1 << 32)
        for partition in range(3_000)
    }
    found = [p for p, code in codes.items() if (code ^ code >> 16) % buckets == 7]
    return [TaskId(subtopology, partition) for partition in found[:20]]


FAMILIES = {
    "one hash code": COLLIDING,
    "one bucket": meeting(256, 2),
    # The table doubles while a tree is in it, and the tree falls apart.
    "two buckets in the end": meeting(64, 2),
    # To Java, the hash codes of the latter are negative.
    "signs": meeting(256, 2) + meeting(256, 2_300_000),
    "two kinds": COLLIDING + meeting(64, 3),
}


def java_task(jvm: Any, task: TaskId) -> Any:
    return jvm.org.apache.kafka.streams.processor.TaskId(task.subtopology, task.partition)


def assert_same_order(jvm: Any, added: list[TaskId], removed: list[TaskId]) -> None:
    theirs = jvm.java.util.HashMap()
    ours = JavaHashMap[TaskId](task_hash_code)
    for task in added:
        theirs.put(java_task(jvm, task), True)
        ours.add(task)
    assert in_hash_order(task_hash_code, added) == list(ours)
    for task in removed:
        theirs.remove(java_task(jvm, task))
        ours.remove(task)
    assert str(list(map(str, ours))).replace("'", "") == theirs.keySet().toString()
    assert len(ours) == len(added) - len(removed)


@settings(max_examples=daily(60, 150), deadline=None, print_blob=True)
@given(st.data())
def test_keys_come_in_javas_order_whatever_was_added_and_removed(
    jvm: Any, data: st.DataObject
) -> None:
    family = data.draw(st.sampled_from([*FAMILIES.values()]))
    among = data.draw(st.sampled_from([[], SPREAD[:20], SPREAD[:40], SPREAD]))
    added = data.draw(st.permutations(family + among))[: data.draw(st.integers(1, 90))]
    removed = data.draw(st.permutations(added))[: data.draw(st.integers(0, len(added)))]
    assert_same_order(jvm, added, removed)


@settings(max_examples=daily(40, 100), deadline=None, print_blob=True)
@given(st.data())
def test_keys_that_are_computed_come_in_javas_order(jvm: Any, data: st.DataObject) -> None:
    family = data.draw(st.sampled_from([*FAMILIES.values()]))
    among = data.draw(st.sampled_from([[], SPREAD[:20], SPREAD[:40], SPREAD]))
    calls = data.draw(st.permutations(family + among))[: data.draw(st.integers(1, 90))]
    calls += data.draw(st.lists(st.sampled_from(calls), max_size=5))
    capacity = data.draw(st.integers(1, 40))
    theirs = jvm.java.util.HashMap(capacity)
    ours = JavaHashMap[TaskId](task_hash_code, 1 << (capacity - 1).bit_length())
    for task in calls:
        theirs.computeIfAbsent(java_task(jvm, task), jvm.java.util.function.Function.identity())
        ours.compute(task)
    assert str(list(map(str, ours))).replace("'", "") == theirs.keySet().toString()


@pytest.mark.parametrize("kept", range(10))
def test_a_crowded_bucket_becomes_a_tree_and_a_list_again(jvm: Any, kept: int) -> None:
    tasks = sorted(SPREAD + COLLIDING)
    assert_same_order(jvm, tasks, COLLIDING[kept:])
    assert_same_order(jvm, tasks, COLLIDING[::-1][kept:])


@pytest.mark.parametrize("staying", range(9))
@pytest.mark.parametrize("going", range(4, 9))
def test_a_tree_falls_apart_into_lists_and_trees(jvm: Any, staying: int, going: int) -> None:
    stay = meeting(128, 2)
    go = [task for task in meeting(64, 2) if task not in stay]
    crowd = [*reversed(stay[:staying]), *go[:going]]
    assert_same_order(jvm, SPREAD[:27] + crowd + SPREAD[27:], [])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tasks_of_these_tests_do_meet_in_a_tree(family: str) -> None:
    ours = JavaHashMap[TaskId](task_hash_code)
    for task in SPREAD[:30] + FAMILIES[family]:
        ours.add(task)
    assert any(isinstance(bucket, JavaTreeBin) for bucket in ours._buckets)
