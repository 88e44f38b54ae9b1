"""A scenario as records have it: what was read is written again, and expands to what was parsed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from caughtup.models.assignment.compact import read_compact, scenario_record
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.records.fields import json_values

ONE, TWO = str(ProcessId.of(1)), str(ProcessId.of(2))


def described() -> dict[str, Any]:
    """Describe a scenario with everything that an application tells, in the order of a record."""
    return {
        "name": "orders/7",
        "assignor": "minimal_movement",
        "config": {
            "acceptable.recovery.lag": 100,
            "rack.aware.assignment.tags": ["zone"],
            "rack.aware.assignment.strategy": "none",
            "rack.aware.assignment.traffic_cost": None,
        },
        "tasks": {
            "0_2": {
                "stateful": True,
                "stores": ["counts"],
                "source_partitions": [["orders-in", 2]],
                "changelog_partitions": [["orders-counts-changelog", 2]],
            },
            "0_10": {
                "stateful": True,
                "source_partitions": [["orders-in", 10]],
                "changelog_partitions": [["orders-counts-changelog", 10]],
            },
            "1_0": {
                "stateful": False,
                "source_partitions": [["orders-b", 0]],
                "changelog_partitions": [],
            },
        },
        "greatest_lags": {"0_2": 50_000, "0_10": 700},
        "clients": {
            ONE: {
                "capacity": 2,
                "tags": {"zone": "a"},
                "previous_active": ["0_2", "0_10", "1_0"],
                "previous_standby": [],
                "lags": {"0_2": -2, "0_10": -2},
                "rack": "r1",
                "client_ids": ["app-1-consumer", "app-2-consumer"],
            },
            TWO: {
                "capacity": 1,
                "tags": {},
                "previous_active": [],
                "previous_standby": ["0_2", "9_9"],
                "lags": {"0_2": 70},
            },
        },
    }


def test_what_was_read_is_written_again_byte_for_byte() -> None:
    given = described()
    assert json.dumps(json_values(scenario_record(read_compact(given)))) == json.dumps(given)


def test_it_expands_to_what_an_assignor_decides_from() -> None:
    given = described()
    compact = read_compact(given)
    assert compact.expanded() == parse_scenario(given)
    assert compact.clients[ProcessId.of(2)].lags == {TaskId(0, 2): 70}
    assert compact.lag_of(ProcessId.of(2), TaskId(0, 10)) == 700
    assert compact.lag_of(ProcessId.of(2), TaskId(1, 0)) is None
    assert compact.acceptable_recovery_lag == 100


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
def test_it_expands_to_the_same_where_tasks_are_assigned_by_rack(strategy: str) -> None:
    given = described()
    given["config"]["rack.aware.assignment.strategy"] = strategy
    assert read_compact(given).expanded() == parse_scenario(given)


def test_lags_that_a_record_left_out_are_missed_when_it_is_to_be_decided_from() -> None:
    given = described()
    given["greatest_lags"] = {}
    for client in given["clients"].values():
        client["lags"] = {}
    compact = read_compact(given)
    assert json_values(scenario_record(compact)) == given
    with pytest.raises(ScenarioError, match=f"clients.{ONE}.lags.0_2: is missing"):
        compact.expanded()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("name",), 7),
        (("assignor",), None),
        (("config", "unheard.of"), 1),
        (("tasks", "0-2"), {"stateful": True}),
        (("tasks", "0_2", "stateful"), "yes"),
        (("tasks", "0_2", "stores"), [1]),
        (("tasks", "0_2", "changelog_partitions"), [["orders", "2"]]),
        (("clients",), {}),
        (("clients", ONE, "client_ids"), "app"),
        (("clients", ONE, "lags"), {"0_2": -1}),
    ],
)
def test_whatever_is_wrong_in_it_is_refused(path: tuple[str, ...], value: Any) -> None:
    given = described()
    inside = given
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = value
    with pytest.raises(ScenarioError):
        read_compact(given)


def test_racks_of_replicas_are_written_as_they_are_read_and_decide_the_same() -> None:
    told = described()
    told["config"]["rack.aware.assignment.strategy"] = "min_traffic"
    told["clients"][TWO]["rack"] = "r2"
    told["brokers"] = {"7": "r2", "9": "r1"}
    told["replicas"] = {
        "orders-in-2": [7, 9],
        "orders-in-10": [9],
        "orders-b-0": [7, 12],
        "orders-counts-changelog-2": [9, 7],
        "orders-counts-changelog-10": [7],
    }
    written = json_values(scenario_record(read_compact(told)))
    assert written["brokers"] == {"0": "r1", "1": "r2"}
    assert written["replicas"]["orders-b-0"] == [1, 2]
    again = read_compact(json.loads(json.dumps(written)))
    assert again == read_compact(told)
    whole = dict(told, replicas={**told["replicas"], "orders-b-0": [7]})
    assert read_compact(whole).expanded().racks == parse_scenario(whole).racks is not None
