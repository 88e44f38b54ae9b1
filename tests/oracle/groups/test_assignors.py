"""Groups of consumers and of Streams, round by round, by the published assignors and by ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from caughtup.agents.cli.assign import answer_line
from caughtup.demo.apps.published_assignor import PublishedConsumerAssignor
from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.assignors.kafka.streams_group import BrokerRelease, MemberTasks, assign_sticky
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TaskId
from tests.oracle.conftest import seeds_of_a_family
from tests.oracle.generated.consumer_groups import ConsumerGroupStory
from tests.oracle.generated.coordinated_groups import CoordinatedGroup, generate_group
from tests.support.oracles import Oracle

#: Those of a release share JVMs.
of_4_3, of_4_4 = map(pytest.mark.xdist_group, ("group oracle", "group oracle 4.4"))
Json = dict[str, Any]
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative_sticky", "uniform", "range_848")


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.family("consumer groups: the clients' and the coordinator's assignors, 5 rounds each")
@seeds_of_a_family(quick=True)
@of_4_3
def test_partitions_are_assigned_as_by_the_published_assignors(
    consumer_group_oracle: PublishedConsumerAssignor,
    assignor: str,
    seeds: range,
    tally: Callable[[int], None],
) -> None:
    for seed in seeds:
        _assert_same_story(consumer_group_oracle, ConsumerGroupStory(seed, assignor))
    tally(len(seeds))


@pytest.mark.heavy
@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.family("consumer groups: the assignors of 4.4.0, 5 rounds each")
@seeds_of_a_family(quick=True)
@of_4_4
def test_partitions_are_assigned_as_by_those_of_4_4(
    consumer_group_oracle_4_4: PublishedConsumerAssignor,
    assignor: str,
    seeds: range,
    tally: Callable[[int], None],
) -> None:
    for seed in seeds:
        _assert_same_story(consumer_group_oracle_4_4, ConsumerGroupStory(seed, assignor))
    tally(len(seeds))


@pytest.mark.family("streams groups: sticky, 6 rounds each")
@seeds_of_a_family(quick=True)
@of_4_3
def test_tasks_are_assigned_as_by_the_sticky_assignor(
    streams_group_oracle: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    for seed in seeds:
        _assert_same_tasks(streams_group_oracle, generate_group(seed), BrokerRelease.V4_3)
    tally(len(seeds))


@pytest.mark.heavy
@pytest.mark.family("streams groups: sticky of 4.4.0, 6 rounds each")
@seeds_of_a_family(quick=True)
@of_4_4
def test_tasks_are_assigned_as_by_the_sticky_assignor_of_4_4(
    streams_group_oracle_4_4: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    for seed in seeds:
        _assert_same_tasks(streams_group_oracle_4_4, generate_group(seed), BrokerRelease.V4_4)
    tally(len(seeds))


def _assert_same_story(oracle: PublishedConsumerAssignor, story: ConsumerGroupStory) -> None:
    for line in story.rounds():
        ours = answer_line(json.dumps(line).encode(), None)
        problem = ours.get("error", {"code": None, "message": ""})
        if problem["code"] == "unsupported" or problem["message"].endswith("for ever"):
            return  # Kafka's would answer nonsense, or never
        oracle.load(line)
        if problem["code"] == "assignor_fails":
            with pytest.raises(CaughtupError, match="xception"):
                oracle.decide()
            return
        theirs = oracle.decide().decision
        assert ours.get("members") == theirs["members"], json.dumps(line)
        story.decided(theirs["members"])


def _assert_same_tasks(oracle: Oracle, group: CoordinatedGroup, release: BrokerRelease) -> None:
    tasks = [
        TaskId(int(name), number)
        for name, (width, _) in group.subtopologies.items()
        for number in range(width)
    ]
    stateful = frozenset(task for task in tasks if group.subtopologies[str(task.subtopology)][1])
    had: dict[str, MemberTasks] = {}
    for number, members in enumerate(group.rounds):
        before = {
            name: MemberTasks(
                members[name],
                had[name].active if name in had else frozenset(),
                had[name].standby if name in had else frozenset(),
                group.offsets(number, name, tasks) if release is BrokerRelease.V4_4 else {},
            )
            for name in in_hash_map_order(members)
        }
        line = _line(group, before)
        had = assign_sticky(before, tasks, stateful, group.standbys, release)
        ours = {
            name: {"active": _written(own.active), "standby": _written(own.standby), "warmup": []}
            for name, own in had.items()
        }
        assert ours == oracle.ask(line)["members"], f"seed {group.seed}, round {number}"
        if release is BrokerRelease.V4_3:
            answered = answer_line(json.dumps(line).encode(), None)
            assert answered["members"] == ours, f"seed {group.seed}, round {number}"


def _line(group: CoordinatedGroup, members: dict[str, MemberTasks]) -> Json:
    return {
        "name": f"seed {group.seed}",
        "assignor": "streams_sticky",
        "config": {"num.standby.replicas": group.standbys},
        "subtopologies": {
            name: {"tasks": width, "stateful": state}
            for name, (width, state) in group.subtopologies.items()
        },
        "members": {
            name: {
                "process_id": own.process,
                "active": _written(own.active),
                "standby": _written(own.standby),
                "offsets": {str(task): offset for task, offset in own.offsets.items()},
            }
            for name, own in members.items()
        },
    }


def _written(tasks: frozenset[TaskId]) -> list[str]:
    return list(map(str, sorted(tasks)))
