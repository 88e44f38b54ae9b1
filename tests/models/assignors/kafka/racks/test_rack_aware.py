"""Assignment by rack: the published jar's own answers, and what it saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.kafka.racks.rack_aware import Costs, RackAwareAssignor
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import TaskId
from tests.models.assignors.building import client, described
from tests.models.assignors.published import assert_reproduced, each_of, examples
from tests.support.groups.streams import RUNNING, process

EXAMPLES = examples("rack_aware")


@each_of(EXAMPLES)
def test_the_published_assignors_decision_is_reproduced(example: dict[str, Any]) -> None:
    assert_reproduced(example)


def racked(
    racks: str, replicas: str, *, stateful: bool = True, config: Mapping[str, Any] | None = None
) -> Scenario:
    """Describe clients and tasks by the racks that the clients are in and the tasks are read from.

    Every broker has a rack of its own, and every client is caught up on everything.
    """
    tasks = [f"0_{partition}" for partition in range(len(replicas))]
    lags = dict.fromkeys(tasks, RUNNING) if stateful else {}
    data = described(*(client(dict(lags)) | {"rack": rack} for rack in racks))
    data["config"]["rack.aware.assignment.strategy"] = "min_traffic"
    data["config"] |= config or {}
    data["brokers"] = {str(number): rack for number, rack in enumerate(sorted({*racks, *replicas}))}
    brokers = {rack: int(number) for number, rack in data["brokers"].items()}
    data["tasks"], data["replicas"] = {}, {}
    for partition, (task, rack) in enumerate(zip(tasks, replicas, strict=True)):
        data["tasks"][task] = {
            "stateful": stateful,
            "source_partitions": [["in", partition]],
            "changelog_partitions": [["changelog", partition]],
        }
        data["replicas"][f"in-{partition}"] = [brokers[rack]]
        data["replicas"][f"changelog-{partition}"] = [brokers[rack]]
    return parse_scenario(data)


def partitions(scenario: Scenario, number: int, role: str = "active") -> list[int]:
    given_to = decide(scenario).clients[process(number)]
    return [task.partition for task in getattr(given_to, role)]


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
@pytest.mark.parametrize("stateful", [True, False])
def test_actives_are_read_in_their_own_rack_where_that_leaves_the_loads_alone(
    strategy: str, stateful: bool
) -> None:
    config = {"rack.aware.assignment.strategy": strategy}
    scenario = racked("ab", "bbba", stateful=stateful, config=config)
    mine = partitions(scenario, 1)
    assert len(mine) == 2
    assert 3 in mine
    plain = racked("ab", "bbba", config={"rack.aware.assignment.strategy": "none"})
    assert partitions(plain, 1) == [0, 2]


def test_standbys_are_restored_in_their_own_rack() -> None:
    scenario = racked("aabb", "bbaa", config={"num.standby.replicas": 1})
    for number, rack in enumerate("aabb", 1):
        read_from = "".join("bbaa"[one] for one in partitions(scenario, number, "standby"))
        assert read_from == rack


@pytest.mark.parametrize(("traffic", "non_overlap", "moves"), [(10, 1, True), (1, 1, False)])
def test_a_task_moves_only_when_that_saves_more_than_it_costs(
    traffic: int, non_overlap: int, moves: bool
) -> None:
    """Task 0_0 alone is read in the wrong rack; its exchange for another saves one crossing."""
    scenario = racked("ab", "bb", config={})
    clients = [ClientState(one) for one in scenario.clients]
    clients[0].active.add(TaskId(0, 0))
    clients[1].active.add(TaskId(0, 1))
    RackAwareAssignor(scenario, clients, Costs(traffic, non_overlap)).optimise_stateful()
    assert clients[0].active == {TaskId(0, 0)}, "a crossing for a crossing saves nothing"

    scenario = racked("ab", "ba", config={})
    RackAwareAssignor(scenario, clients, Costs(traffic, non_overlap)).optimise_stateful()
    assert clients[0].active == ({TaskId(0, 1)} if moves else {TaskId(0, 0)})


def test_the_reason_for_a_move_without_state_names_racks_where_they_counted() -> None:
    by_rack = decide(racked("ab", "ba", stateful=False)).movements
    assert all("saves traffic between racks" in movement.reason for movement in by_rack)
    config = {"rack.aware.assignment.strategy": "none"}
    plain = decide(racked("ab", "ba", stateful=False, config=config)).movements
    assert len(by_rack) == len(plain) == 2
    assert not any("rack" in movement.reason for movement in plain)


def test_the_configs_costs_count_more_than_the_assignors_own() -> None:
    config = {
        "rack.aware.assignment.traffic_cost": 0,
        "rack.aware.assignment.non_overlap_cost": 0,
    }
    assert partitions(racked("ab", "ba"), 1) == [1]
    assert partitions(racked("ab", "ba", config=config), 1) == [0]
    # Without state the configs don't count.
    assert partitions(racked("ab", "ba", stateful=False, config=config), 1) == [1]


def test_costs_overflow_as_javas_ints_do() -> None:
    across = (frozenset("b"), frozenset("b"))
    assert Costs(1_500_000_000, 1).of(across, "a", stays=True) == 3_000_000_000 - (1 << 32)
    assert Costs(1_500_000_000, 1).of(across, "b", stays=False) == 1
