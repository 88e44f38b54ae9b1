"""minimal_movement with client tags and racks: where standbys go, and which tasks move."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from tests.models.assignors.building import client, described, task
from tests.models.assignors.minimal.building import FOUR, NOTHING, given, kinds
from tests.support.groups.streams import process


def tagged(*zones: str, **rest: Any) -> dict[str, Any]:
    data = described(*(client() for _ in zones), **rest)
    data["assignor"] = "minimal_movement"
    data["config"]["rack.aware.assignment.tags"] = ["zone"]
    for one, zone in zip(data["clients"].values(), zones, strict=True):
        one["tags"] = {"zone": zone}
    return data


def test_standbys_are_in_other_zones_than_their_actives() -> None:
    data = tagged("a", "a", "b", "b", stateful=FOUR, standbys=1)
    decision = decide(parse_scenario(data))
    zone_of = dict(zip(decision.clients, "aabb", strict=True))
    for one in FOUR:
        zones = {
            zone_of[who]
            for who, had in decision.clients.items()
            if task(one) in (*had.active, *had.standby)
        }
        assert zones == {"a", "b"}


def test_a_standby_moves_to_another_zone_once_that_one_has_a_client() -> None:
    data = tagged("a", "a", "b", stateful=("0_0",), standbys=1)
    first, second, _ = data["clients"].values()
    first |= {"previous_active": ["0_0"], "lags": {"0_0": -2}}
    second |= {"previous_standby": ["0_0"], "lags": {"0_0": 0}}
    decision = decide(parse_scenario(data))
    assert kinds(decision) == [("warmup", "0_0", 3)]
    assert decision.movements[0].source == process(2)
    assert "stands by meanwhile" in decision.movements[0].reason


def racked(scenario: dict[str, Any], strategy: str = "min_traffic") -> dict[str, Any]:
    """Set client 1's rack to r0, client 2's to r1 and so on; task 0_n is read in rack r(n)."""
    count = len(scenario["clients"])
    scenario["config"]["rack.aware.assignment.strategy"] = strategy
    scenario["brokers"] = {str(n): f"r{n}" for n in range(count)}
    scenario["replicas"] = {}
    for number, one in enumerate(scenario["clients"].values()):
        one["rack"] = f"r{number}"
    for name, one in scenario["tasks"].items():
        partition = int(name.partition("_")[2])
        one["source_partitions"] = [["in", partition]]
        one["changelog_partitions"] = [["log", partition]]
        for topic in ("in", "log"):
            scenario["replicas"][f"{topic}-{partition}"] = [partition % count]
    return scenario


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
def test_of_tasks_that_cost_as_many_copies_those_move_that_are_read_in_the_clients_rack(
    strategy: str,
) -> None:
    """Of client 1's tasks only 0_3 is read in the rack of client 2."""
    data = described(client(active=("0_0", "0_2", "0_3", "0_4")), client(), stateful=())
    data["tasks"] = {t: {"stateful": True} for t in ("0_0", "0_2", "0_3", "0_4")}
    for one in list(data["clients"].values())[1:]:
        one["lags"] = dict.fromkeys(data["tasks"], NOTHING)
    data["assignor"] = "minimal_movement"
    decision = decide(parse_scenario(racked(data, strategy)))
    assert ("warmup", "0_3", 2) in kinds(decision)


def test_copies_that_have_to_be_built_anyway_are_built_where_they_are_read() -> None:
    data = described(*(client() for _ in range(3)), stateful=("0_0", "0_1", "0_2"))
    data["assignor"] = "minimal_movement"
    data["clients"] = dict(reversed(data["clients"].items()))
    decision = decide(parse_scenario(racked(data)))
    assert [given(decision, n)[0] for n in (1, 2, 3)] != ["", "", ""]
    read = {n: given(decision, n)[0] for n in (1, 2, 3)}
    racks = {n: one["rack"] for n, one in zip((3, 2, 1), data["clients"].values(), strict=True)}
    assert all(read[n] == f"0_{racks[n][1]}" for n in (1, 2, 3))
