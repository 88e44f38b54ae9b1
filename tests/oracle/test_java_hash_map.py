"""The order of a java.util.HashMap's keys, against Java's own, crowded buckets included."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignors.java_hash_map import JavaHashMap, task_hash_code
from caughtup.models.assignors.java_tree_bin import JavaTreeBin
from caughtup.models.ids import TaskId

#: One subtopology up and 31 partitions down is the same hash code.
COLLIDING = [TaskId(subtopology, 31 * (19 - subtopology)) for subtopology in range(20)]
#: These differ in their hash codes but share a bucket of every table of up to 256.
MEETING = [
    TaskId(2, partition)
    for partition in range(4_000)
    if (code := 29_791 + 961 * 2 + 31 * partition) and (code ^ code >> 16) % 256 == 7
]
SPREAD = [TaskId(0, partition) for partition in range(60)]


def java_task(jvm: Any, task: TaskId) -> Any:
    return jvm.org.apache.kafka.streams.processor.TaskId(task.subtopology, task.partition)


def assert_same_order(jvm: Any, added: list[TaskId], removed: list[TaskId]) -> None:
    theirs = jvm.java.util.HashMap()
    ours = JavaHashMap[TaskId](task_hash_code)
    for task in added:
        theirs.put(java_task(jvm, task), True)
        ours.add(task)
    for task in removed:
        theirs.remove(java_task(jvm, task))
        ours.remove(task)
    assert str(list(map(str, ours))).replace("'", "") == theirs.keySet().toString()
    assert len(ours) == len(added) - len(removed)


@settings(max_examples=150, deadline=None, print_blob=True)
@given(st.data())
def test_keys_come_in_javas_order_whatever_was_added_and_removed(
    jvm: Any, data: st.DataObject
) -> None:
    family = data.draw(st.sampled_from([COLLIDING, MEETING, COLLIDING + MEETING]))
    among = data.draw(st.sampled_from([[], SPREAD[:20], SPREAD[:40], SPREAD]))
    added = data.draw(st.permutations(family + among))[: data.draw(st.integers(1, 90))]
    removed = data.draw(st.permutations(added))[: data.draw(st.integers(0, len(added)))]
    assert_same_order(jvm, added, removed)


@pytest.mark.parametrize("kept", range(10))
def test_a_crowded_bucket_becomes_a_tree_and_a_list_again(jvm: Any, kept: int) -> None:
    tasks = sorted(SPREAD + COLLIDING)
    assert_same_order(jvm, tasks, COLLIDING[kept:])
    assert_same_order(jvm, tasks, COLLIDING[::-1][kept:])


@pytest.mark.parametrize("family", [COLLIDING, MEETING])
def test_the_tasks_of_these_tests_do_meet_in_a_tree(family: list[TaskId]) -> None:
    ours = JavaHashMap[TaskId](task_hash_code)
    for task in SPREAD + family:
        ours.add(task)
    assert any(isinstance(bucket, JavaTreeBin) for bucket in ours._buckets)
