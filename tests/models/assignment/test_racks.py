"""When tasks are assigned by rack: never halfway, and never on racks that can't be read."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.errors import ScenarioError
from tests.models.assignors.building import ABSENT, changed, client, described, task

ONE = "00000000-0000-0000-0000-000000000001"


def racked(standbys: int = 1) -> dict[str, Any]:
    """Describe two clients and a task that reads two partitions, everything with a rack."""
    scenario = described(
        client(active=("0_0",)) | {"rack": "a"},
        client() | {"rack": "b"},
        stateful=("0_0",),
        standbys=standbys,
    )
    scenario["config"]["rack.aware.assignment.strategy"] = "min_traffic"
    scenario["tasks"]["0_0"] |= {
        "source_partitions": [["orders", 0], ["prices-eu", 0]],
        "changelog_partitions": [["app-store-changelog", 0]],
    }
    scenario["brokers"] = {"0": "a", "1": "b"}
    scenario["replicas"] = {
        "orders-0": [0, 1],
        "prices-eu-0": [1],
        "app-store-changelog-0": [0],
        "app-store-changelog-1": [1, 0],
        "elsewhere-0": [9],
    }
    return scenario


def test_a_group_in_which_nothing_lacks_a_rack_is_assigned_by_rack() -> None:
    racks = parse_scenario(racked()).racks
    assert racks is not None
    assert racks.clients == ("a", "b")
    assert racks.of_sources(task("0_0")) == ({"a", "b"}, {"b"})
    assert racks.of_changelogs(task("0_0")) == ({"a"},)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("config/rack.aware.assignment.strategy", "none"),
        (f"clients/{ONE}/rack", ABSENT),
        (f"clients/{ONE}/rack", None),
        ("brokers", ABSENT),
        ("brokers/1", ABSENT),
        ("brokers/1", None),
        ("replicas", ABSENT),
        ("replicas/orders-0", ABSENT),
        ("replicas/orders-0", []),
        ("replicas/orders-0", [0, 7]),
    ],
)
@pytest.mark.parametrize("standbys", [0, 1])
def test_a_group_in_which_something_lacks_a_rack_is_not(
    path: str, value: object, standbys: int
) -> None:
    assert parse_scenario(changed(racked(standbys), path, value)).racks is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("replicas/app-store-changelog-0", []),
        ("replicas/app-store-changelog-0", [7]),
        ("replicas/app-store-changelog-1", [0, 7]),
        ("replicas", {"orders-0": [0], "prices-eu-0": [1]}),
    ],
)
def test_changelogs_have_to_have_racks_only_for_standbys(path: str, value: object) -> None:
    assert parse_scenario(changed(racked(standbys=1), path, value)).racks is None
    assert parse_scenario(changed(racked(standbys=0), path, value)).racks is not None


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("brokers", [], "brokers: is not an object"),
        ("brokers/one", "a", "brokers: 'one' is not a broker id"),
        ("brokers/01", "a", "brokers: '01' is not a broker id"),
        ("brokers/0", 3, "brokers.0: is not a string"),
        ("replicas", [], "replicas: is not an object"),
        ("replicas/orders", [0], "replicas: 'orders' is not a partition such as orders-3"),
        ("replicas/-0", [0], "replicas: '-0' is not a partition"),
        ("replicas/orders-0", 0, "replicas.orders-0: is not an array"),
        ("replicas/orders-0", ["0"], "replicas.orders-0: is not an integer"),
        ("replicas/orders-0", [-1], "replicas.orders-0: -1 is not from 0 to"),
        ("tasks/0_0/source_partitions", {}, "tasks.0_0.source_partitions: is not an array"),
        ("tasks/0_0/source_partitions", [["t"]], "['t'] is not a topic and a number"),
        ("tasks/0_0/source_partitions", [[0, "t"]], "[0, 't'] is not a topic and a number"),
        ("tasks/0_0/changelog_partitions", [["t", -1]], "changelog_partitions: -1 is not from 0"),
    ],
)
def test_racks_that_cannot_be_read_are_named(path: str, value: object, says: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(changed(racked(), path, value))
    assert raised.value.code == "bad_field"
    assert says in raised.value.message


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("tasks/0_0/source_partitions", ABSENT, "tasks.0_0.source_partitions: there must be at"),
        ("tasks/0_0/changelog_partitions", [], "tasks.0_0.changelog_partitions: there must be at"),
        ("replicas/app-store-changelog-0", ABSENT, "replicas.app-store-changelog-0: is missing"),
    ],
)
def test_what_is_missing_where_kafka_would_give_up_is_named(
    path: str, value: object, says: str
) -> None:
    scenario = racked()
    # A second task, because standbys are only looked at where they could be exchanged.
    scenario["tasks"]["0_1"] = scenario["tasks"]["0_0"]
    for one in scenario["clients"].values():
        one["lags"]["0_1"] = 100_000
    with pytest.raises(ScenarioError) as raised:
        decide(parse_scenario(changed(scenario, path, value)))
    assert raised.value.code == "missing_field"
    assert says in raised.value.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
PATHS = st.sampled_from(
    ["brokers", "brokers/0", "replicas", "replicas/orders-0", f"clients/{ONE}/rack"]
    + [f"tasks/0_0/{kind}_partitions" for kind in ("source", "changelog")]
)


@settings(print_blob=True)
@given(PATHS, JSON)
def test_any_json_in_place_of_racks_is_decided_or_refused(path: str, value: object) -> None:
    with contextlib.suppress(ScenarioError):
        assert decide(parse_scenario(changed(racked(), path, value))).clients
