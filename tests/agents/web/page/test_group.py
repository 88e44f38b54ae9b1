"""One group on the page: its partitions, the worst first and within bounds, and what it is."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.web.page import group as module
from caughtup.agents.web.page.group import group_steps
from caughtup.agents.web.page.parts import recent_of_cluster, recent_of_group
from caughtup.models.lag.group_lag import Positions
from caughtup.models.recent.happenings import Happening
from caughtup.models.records.fields import json_values
from caughtup.models.shown.lag import partition_lines
from caughtup.models.state.cluster import ClusterState
from tests.agents.web.page.test_overview import done
from tests.support.groups.new_groups import streams_group
from tests.support.groups.records import GROUP
from tests.support.states import (
    HOSTILE,
    JUDGED_MS,
    NOW_MS,
    STOPPED,
    assess,
    everything,
    judged,
    read,
)


def shown(state: ClusterState, group: str, now_ms: int = NOW_MS) -> dict[str, Any]:
    return done(group_steps(state, Health(ready=True), now_ms, group))


def test_its_partitions_are_those_of_the_lag_table_with_their_age_and_host() -> None:
    state = everything()
    view = shown(state, "plain")
    assert view["group"]["group"] == "plain"
    lines = {(line.topic, line.partition): line for line in partition_lines(state, "plain")}
    assert {(row["topic"], row["partition"]) for row in view["partitions"]} == set(lines)
    for row in view["partitions"]:
        line = lines[row["topic"], row["partition"]]
        assert (row["lag"], row["client_id"]) == (line.lag, line.client_id)
        assert row["as_of_ms"] > 0
        assert row["host"]


def test_an_application_has_its_tasks_and_what_happened_to_it() -> None:
    state = everything()
    state.recent.happenings.note(Happening(NOW_MS, "rebalance", "generation 6 → 7", None, GROUP))
    view = shown(state, GROUP)
    assert {task["task"] for task in view["application"]["tasks"]} == {"0_0", "0_1"}
    assert view["feed"][0]["text"] == "generation 6 → 7"


def test_an_application_whose_tasks_the_coordinator_assigns_has_them_too() -> None:
    state = everything()
    configs = {"num.standby.replicas": "1"}
    records = streams_group("by-coordinator", "orders-in", "counts-changelog", configs=configs)
    read(state, *records, seen_ms=NOW_MS)
    application = shown(state, "by-coordinator")["application"]
    assert application["by_coordinator"] is True
    assert (application["generation"], application["history"]) == (4, [])
    (client,) = application["clients"]
    assert (client["name"], client["capacity"], client["leader"]) == ("c", 1, False)
    assert [(one["task"], one["stateful"]) for one in application["tasks"]] == [
        ("0_0", True),
        ("0_1", True),
    ]
    roles = [[copy["role"] for copy in one["copies"]] for one in application["tasks"]]
    assert roles == [["active", "warmup"]] * 2
    (config,) = application["configs"]
    assert (config["name"], config["values"]) == ("num.standby.replicas", "1")
    assert config["known"] == "by the coordinator"
    assert "by_coordinator" not in shown(state, GROUP)["application"]


@pytest.mark.parametrize("name", ["nobody", "", "\u202e" * 249])
def test_a_group_that_nobody_knows_is_absent(name: str) -> None:
    view = shown(everything(), name)
    assert "group" not in view
    assert view["name"] == name
    assert view["feed"] == []


def test_a_name_that_is_markup_is_a_name() -> None:
    assert shown(everything(), HOSTILE)["group"]["group"] == HOSTILE


def test_of_many_partitions_the_worst_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    state = judged()
    assess(state)
    every = shown(state, STOPPED, JUDGED_MS)["partitions"]
    assert len(every) == 2
    monkeypatch.setattr(module, "PARTITIONS_SHOWN", 1)
    view = shown(state, STOPPED, JUDGED_MS)
    assert view["partitions"] == every[:1]
    assert view["partitions"][0]["verdict"] == "stopped"
    assert view["partitions_more"] == 1


def test_its_last_hours_have_marks_in_the_order_of_time() -> None:
    state = everything()
    for number in range(3):
        at_ms = NOW_MS + 10_000 * number
        state.recent.sample(GROUP, at_ms, 40 + number, Positions(1, 60, 100))
        happening = Happening(at_ms, "rebalance", f"generation {number}", None, GROUP)
        state.recent.happenings.note(happening)
    state.recent.happenings.note(Happening(NOW_MS, "movement", "planned", None, GROUP))
    told = json_values(recent_of_group(state, GROUP, NOW_MS + 20_000))
    assert told["series"]["lag"] == [40, 41, 42]
    assert set(told["series"]) == {"lag", "committed_per_second", "produced_per_second"}
    assert [mark["text"] for mark in told["marks"]][-3:] == [f"generation {n}" for n in range(3)]
    assert recent_of_group(state, "nobody", NOW_MS).series == {}
    assert recent_of_cluster(state, NOW_MS).at_ms == []
