"""Groups whose coordinator assigns, round by round, by the published assignors and by ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import pytest

from caughtup.models.assignors.group_coordinator import (
    MemberTasks,
    assign_range,
    assign_sticky,
    assign_uniform,
)
from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.ids import TaskId, TopicPartition
from tests.oracle.conftest import seeds_of_a_family
from tests.oracle.generated.coordinated_groups import CoordinatedGroup, generate_group
from tests.support.oracles import Oracle

#: They share one JVM.
pytestmark = pytest.mark.xdist_group("coordinator oracle")
Json = dict[str, Any]


@pytest.mark.family("streams groups: sticky, 6 rounds each")
@seeds_of_a_family(one_of=4)
def test_tasks_are_assigned_as_by_the_sticky_assignor(
    coordinator_oracle: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    for seed in seeds:
        _assert_same_tasks(coordinator_oracle, generate_group(seed))
    tally(len(seeds))


@pytest.mark.parametrize("assignor", ["uniform", "range"])
@pytest.mark.family("consumer groups: uniform and range, 6 rounds each")
@seeds_of_a_family(one_of=4)
def test_partitions_are_assigned_as_by_the_coordinator(
    coordinator_oracle: Oracle, assignor: str, seeds: range, tally: Callable[[int], None]
) -> None:
    for seed in seeds:
        _assert_same_partitions(coordinator_oracle, assignor, generate_group(seed))
    tally(len(seeds))


def _assert_same_tasks(oracle: Oracle, group: CoordinatedGroup) -> None:
    tasks = [
        TaskId(int(name), number)
        for name, (width, _) in group.subtopologies.items()
        for number in range(width)
    ]
    stateful = {task for task in tasks if group.subtopologies[str(task.subtopology)][1]}
    had: Mapping[str, MemberTasks] = {}
    for number, members in enumerate(group.rounds):
        before = {
            member: had.get(member, MemberTasks(process)) for member, process in members.items()
        }
        asked = {
            "assignor": "sticky",
            "standbys": group.standbys,
            "subtopologies": {
                name: {"partitions": width, "stateful": state}
                for name, (width, state) in group.subtopologies.items()
            },
            "members": {
                member: {
                    "process": own.process,
                    "active": _grouped(own.active),
                    "standby": _grouped(own.standby),
                }
                for member, own in before.items()
            },
        }
        had = assign_sticky(before, tasks, stateful, group.standbys)
        ours = {
            member: {"active": _grouped(own.active), "standby": _grouped(own.standby)}
            for member, own in had.items()
        }
        theirs = {
            member: {role: _sorted(tasks) for role, tasks in own.items()}
            for member, own in oracle.ask(asked).items()
        }
        assert ours == theirs, f"seed {group.seed}, round {number}"


def _assert_same_partitions(oracle: Oracle, assignor: str, group: CoordinatedGroup) -> None:
    # A topic's id has its number as its hash code: 0 is Kafka's own.
    topics = {str(int(name) + 1): width for name, (width, _) in group.subtopologies.items()}
    assign = {"uniform": assign_uniform, "range": assign_range}[assignor]
    had: Mapping[str, AbstractSet[TopicPartition]] = {}
    for number, members in enumerate(group.rounds):
        before = {member: had.get(member, frozenset()) for member in in_hash_map_order(members)}
        asked = {
            "assignor": assignor,
            "topics": topics,
            "members": {member: _grouped(own) for member, own in before.items()},
        }
        had = assign(before, topics)
        ours = {member: _grouped(own) for member, own in had.items()}
        theirs = {member: _sorted(own) for member, own in oracle.ask(asked).items()}
        assert ours == theirs, f"seed {group.seed}, round {number}"


def _grouped(ids: Iterable[TaskId] | Iterable[TopicPartition]) -> Json:
    found: Json = {}
    for name, number in sorted(ids):
        found.setdefault(str(name), []).append(number)
    return found


def _sorted(partitions: Json) -> Json:
    return {name: sorted(numbers) for name, numbers in partitions.items()}
