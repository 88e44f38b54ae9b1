"""What brokers assign, where it can be said in a line; tests/oracle holds the rest to the jar."""

from __future__ import annotations

from uuid import UUID

import pytest

from caughtup.models.assignors.group_coordinator import (
    MemberTasks,
    assign_range,
    assign_sticky,
    assign_uniform,
)
from caughtup.models.ids import TaskId, TopicPartition


def partitions(topic: str, *numbers: int) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in numbers}


def members(count: int) -> dict[str, MemberTasks]:
    return {str(UUID(int=n)): MemberTasks(str(UUID(int=1000 + n))) for n in range(count)}


@pytest.mark.parametrize(
    ("before", "after", "tasks", "moved"), [(3, 4, 48, 12), (10, 11, 100, 9), (10, 9, 100, 10)]
)
def test_streams_groups_move_as_few_tasks_as_they_have_to(
    before: int, after: int, tasks: int, moved: int
) -> None:
    """Counted in the published jar, too: but nobody warms up before."""
    every = [TaskId(0, number) for number in range(tasks)]
    had = assign_sticky(members(before), every, frozenset(every), 0)
    now = assign_sticky(
        {name: had.get(name, one) for name, one in members(after).items()},
        every,
        frozenset(every),
        0,
    )
    assert (
        sum(len(own.active - had.get(name, own).active) for name, own in now.items())
        + sum(len(own.active) for name, own in now.items() if name not in had)
        == moved
    )


def test_a_former_standby_takes_over() -> None:
    every = [TaskId(0, number) for number in range(4)]
    had = assign_sticky(members(2), every, frozenset(every), 1)
    (gone, lost), (stays, _) = had.items()
    now = assign_sticky({stays: had[stays]}, every, frozenset(every), 1)
    assert lost.active == had[stays].standby
    assert now[stays].active == frozenset(every)
    assert now[stays].standby == frozenset()
    assert gone not in now


def test_uniform_leaves_who_has_one_more_its_one_more() -> None:
    had = {"a": partitions("t", 0, 1), "b": partitions("t", 2, 3, 4), "c": set()}
    assert assign_uniform(had, {"t": 5}) == {
        "a": partitions("t", 0, 1),
        "b": partitions("t", 2, 3),
        "c": partitions("t", 4),
    }


def test_range_deals_each_topic_apart() -> None:
    given = assign_range({"b": set(), "a": set()}, {"t": 3, "u": 1})
    assert given == {
        "a": partitions("t", 0, 1) | partitions("u", 0),
        "b": partitions("t", 2),
    }
