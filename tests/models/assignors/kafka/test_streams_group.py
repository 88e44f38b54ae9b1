"""What can be said of streams groups in a line; tests/oracle holds the rest to the jars."""

from __future__ import annotations

from uuid import UUID

import pytest

from caughtup.models.assignors.kafka.streams_group import BrokerRelease, MemberTasks, assign_sticky
from caughtup.models.ids import TaskId


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


def test_in_4_4_a_task_goes_where_its_state_directory_is_the_most_complete() -> None:
    task = TaskId(0, 0)
    fresh, old, newer = members(3).values()
    group = {
        "fresh": fresh,
        "old": MemberTasks(old.process, offsets={task: 7}),
        "newer": MemberTasks(newer.process, offsets={task: 8}),
    }
    now = assign_sticky(group, [task], frozenset((task,)), 0, BrokerRelease.V4_4)
    assert [name for name, own in now.items() if own.active] == ["newer"]
