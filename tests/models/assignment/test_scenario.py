"""A scenario that cannot be decided is refused with a code and the name of the field."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignment.configs import Configs
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId
from tests.models.assignors.building import ABSENT, changed, client, described
from tests.support.groups.streams import process

ONE = "00000000-0000-0000-0000-000000000001"
VALID = described(
    client(active=("0_0",)), client({"0_0": 7}), stateful=("0_0",), stateless=("1_0",)
)


@pytest.mark.parametrize(
    ("path", "value", "code", "says"),
    [
        ("assignor", ABSENT, "missing_field", "assignor: is missing"),
        ("assignor", 3, "bad_field", "assignor: is not a string"),
        ("name", 3, "bad_field", "name: is not a string"),
        ("tasks", ABSENT, "missing_field", "tasks: is missing"),
        ("tasks", [], "bad_field", "tasks: is not an object"),
        ("tasks/0_x", {"stateful": True}, "bad_field", "tasks: '0_x' is not a task id such as 0_3"),
        ("tasks/00_0", {"stateful": True}, "duplicate", "tasks: 0_0 is given twice"),
        ("tasks/0_0", True, "bad_field", "tasks.0_0: is not an object"),
        ("tasks/0_0", {}, "missing_field", "tasks.0_0.stateful: is missing"),
        ("tasks/0_0/stateful", 1, "bad_field", "tasks.0_0.stateful: is neither true nor false"),
        ("clients", ABSENT, "missing_field", "clients: is missing"),
        ("clients", {}, "no_clients", "clients: there must be at least one"),
        ("clients/x", {}, "bad_field", "clients: 'x' is not a UUID"),
        (f"clients/{ONE}", None, "bad_field", f"clients.{ONE}: is not an object"),
        (f"clients/{ONE}/capacity", ABSENT, "missing_field", f"clients.{ONE}.capacity: is missing"),
        (f"clients/{ONE}/capacity", 0, "bad_field", f"clients.{ONE}.capacity: 0 is not from 1 to"),
        (f"clients/{ONE}/capacity", 1.5, "bad_field", "capacity: is not an integer"),
        (f"clients/{ONE}/capacity", True, "bad_field", "capacity: is not an integer"),
        (f"clients/{ONE}/previous_active", "0_0", "bad_field", "previous_active: is not an array"),
        (f"clients/{ONE}/previous_active", [7], "bad_field", "previous_active: 7 is not a string"),
        (
            f"clients/{ONE}/previous_standby",
            ABSENT,
            "missing_field",
            "previous_standby: is missing",
        ),
        (f"clients/{ONE}/lags", ABSENT, "missing_field", f"clients.{ONE}.lags: is missing"),
        (f"clients/{ONE}/lags", {}, "missing_field", f"clients.{ONE}.lags.0_0: is missing"),
        (f"clients/{ONE}/lags/0_0", -1, "bad_field", "lags.0_0: is not an offset count, -2 or -3"),
        (f"clients/{ONE}/lags/0_0", 1 << 63, "bad_field", "lags.0_0: is not an offset count"),
        (f"clients/{ONE}/lags/0_0", "7", "bad_field", "lags.0_0: is not an offset count"),
        ("greatest_lags", [], "bad_field", "greatest_lags: is not an object"),
        ("greatest_lags", {"0_0": -1}, "bad_field", "greatest_lags.0_0: is not an offset count"),
        ("greatest_lags", {"9_9": 7}, "unknown_task", "greatest_lags: 9_9 is not among the tasks"),
        ("greatest_lags", {"0_0": 7, "00_0": 7}, "duplicate", "greatest_lags: 0_0 is given twice"),
        (f"clients/{ONE}/lags/9_9", 7, "unknown_task", "lags: 9_9 is not among the tasks"),
        (f"clients/{ONE}/lags/00_0", 7, "duplicate", "lags: 0_0 is given twice"),
        (
            f"clients/{ONE}/previous_active",
            ["0_0", "1_0", "00_0"],
            "duplicate",
            f"clients.{ONE}.previous_active: 0_0 is given twice",
        ),
        ("config", 3, "bad_field", "config: is not an object"),
        ("config/acceptable.lag", 3, "unknown_config", "config: 'acceptable.lag' is not known"),
        ("config/max.warmup.replicas", 0, "bad_field", "config.max.warmup.replicas: 0 is not from"),
        ("config/num.standby.replicas", -1, "bad_field", "config.num.standby.replicas: -1 is not"),
        ("config/acceptable.recovery.lag", None, "bad_field", "lag: is not an integer"),
        (
            "config/probing.rebalance.interval.ms",
            59_999,
            "bad_field",
            "ms: 59999 is not from 60000",
        ),
        ("config/rack.aware.assignment.tags", "zone", "bad_field", "tags: is not an array"),
        ("config/rack.aware.assignment.tags", [["z"]], "bad_field", "tags: is not a string"),
        ("config/rack.aware.assignment.tags", [*"abcdef"], "bad_field", "has more than 5 tags"),
        (f"clients/{ONE}/tags", ["zone"], "bad_field", f"clients.{ONE}.tags: is not an object"),
        (f"clients/{ONE}/tags", {"zone": 1}, "bad_field", f"{ONE}.tags.zone: is not a string"),
        (
            "config/rack.aware.assignment.strategy",
            "least_traffic",
            "bad_field",
            "'least_traffic' is not among none, min_traffic, balance_subtopology",
        ),
        ("config/rack.aware.assignment.strategy", ["none"], "bad_field", "is not among none"),
        ("config/rack.aware.assignment.traffic_cost", 1 << 31, "bad_field", "2147483648 is not"),
        ("config/rack.aware.assignment.non_overlap_cost", "1", "bad_field", "is not an integer"),
        (f"clients/{ONE}/rack", 3, "bad_field", f"clients.{ONE}.rack: is not a string"),
    ],
)
def test_a_field_that_does_not_fit_is_named(path: str, value: object, code: str, says: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(changed(VALID, path, value))
    assert raised.value.code == code
    assert says in raised.value.message


def test_configs_that_are_left_out_have_kafkas_defaults() -> None:
    assert parse_scenario(changed(VALID, "config", ABSENT)).configs == Configs(
        10_000, 2, 0, 600_000
    )


def test_what_concerns_racks_only_may_be_given_with_racks_off() -> None:
    config = {
        "rack.aware.assignment.tags": [],
        "rack.aware.assignment.strategy": "none",
        "rack.aware.assignment.traffic_cost": None,
        "rack.aware.assignment.non_overlap_cost": 3,
    }
    assert parse_scenario({**VALID, "config": config, "brokers": {"0": "r"}, "replicas": {}})


def test_tags_may_be_missing_on_a_client() -> None:
    given = changed(VALID, "config", {"rack.aware.assignment.tags": ["zone", "cluster"]})
    given["clients"][ONE]["tags"] = {"zone": "a", "hall": ""}
    scenario = parse_scenario(given)
    assert scenario.configs.rack_aware_assignment_tags == ("zone", "cluster")
    assert [client.tags for client in scenario.clients] == [{"zone": "a", "hall": ""}, {}]


def test_previous_tasks_may_be_gone_from_the_topology() -> None:
    first = parse_scenario(
        changed(VALID, f"clients/{ONE}/previous_standby", ["0_0", "7_7"])
    ).clients[0]
    assert first.previous_standby == {TaskId(0, 0), TaskId(7, 7)}


def test_clients_and_tasks_are_put_in_kafkas_order() -> None:
    """A UUID that begins with 8 to f is negative to Java, and so comes first."""
    high = "f0000000-0000-0000-0000-000000000000"
    scenario = parse_scenario(
        described(client(), stateful=("10_0", "2_0", "2_11"), stateless=("2_3",))
        | {
            "clients": {
                ONE: client(dict.fromkeys(("10_0", "2_0", "2_11"), 0)),
                high: client(dict.fromkeys(("10_0", "2_0", "2_11"), 0)),
            }
        }
    )
    assert [str(one.process_id) for one in scenario.clients] == [high, ONE]
    assert scenario.stateful == (TaskId(2, 0), TaskId(2, 11), TaskId(10, 0))
    assert scenario.stateless == (TaskId(2, 3),)
    assert scenario.clients[1].process_id == process(1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
PATHS = st.sampled_from(
    ["name", "assignor", "config", "tasks", "tasks/0_0", "tasks/0_0/stateful", "clients"]
    + ["config/acceptable.recovery.lag", "config/rack.aware.assignment.strategy"]
    + ["config/rack.aware.assignment.tags", f"clients/{ONE}/tags"]
    + [f"clients/{ONE}{field}" for field in ("", "/capacity", "/previous_active", "/lags")]
    + [f"clients/{ONE}/lags/0_0"]
)


@settings(print_blob=True)
@given(PATHS, JSON)
def test_any_json_in_any_field_is_read_or_refused(path: str, value: object) -> None:
    with contextlib.suppress(ScenarioError):
        assert parse_scenario(changed(VALID, path, value)).clients


@settings(print_blob=True)
@given(JSON)
def test_any_json_at_all_is_refused(value: Any) -> None:
    with pytest.raises(ScenarioError):
        parse_scenario(value)


def test_a_client_that_does_not_say_its_lag_has_the_greatest() -> None:
    scenario = described(
        client(active=("0_0",)), client({"0_0": 7, "0_1": 3}), stateful=("0_0", "0_1")
    )
    short = copy.deepcopy(scenario)
    short["greatest_lags"] = {"0_0": 7, "0_1": 100_000}
    for one in short["clients"].values():
        one["lags"] = {
            task: lag for task, lag in one["lags"].items() if lag != short["greatest_lags"][task]
        }
    assert sum(len(one["lags"]) for one in short["clients"].values()) == 2
    assert parse_scenario(short) == parse_scenario(scenario)
    del short["greatest_lags"]["0_1"]
    with pytest.raises(ScenarioError, match=r"lags.0_1: is missing"):
        parse_scenario(short)
