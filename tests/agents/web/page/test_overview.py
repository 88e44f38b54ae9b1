"""The page's entrance: every group in a row, the worst first, within bounds."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import msgspec
import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_at_once
from caughtup.agents.web.page import overview
from caughtup.agents.web.page.overview import overview_steps
from caughtup.models.decisions.rebalancing_cost import MembershipChange
from caughtup.models.lag.group_lag import Positions
from caughtup.models.recent.happenings import Happening
from caughtup.models.records.fields import Part
from caughtup.models.shown import groups
from caughtup.models.shown.connect import connect_view
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import LAG
from tests.support.connect.clusters import settled
from tests.support.groups.records import GROUP
from tests.support.states import HOSTILE, JUDGED_MS, NOW_MS, assess, everything, judged


def done(steps: Generator[None, None, Part]) -> dict[str, Any]:
    """Go through all steps, and return what the page parses."""
    found: dict[str, Any] = json.loads(msgspec.json.encode(done_at_once(steps)))
    return found


def shown(state: ClusterState, now_ms: int = NOW_MS, find: str = "") -> dict[str, Any]:
    return done(overview_steps(state, Health(ready=True), now_ms, find))


def test_the_worst_group_comes_first_and_statuses_are_counted() -> None:
    state = judged()
    assess(state)
    view = shown(state, JUDGED_MS)
    statuses = [row["status"] for row in view["groups"]]
    assert statuses == sorted(statuses, key=LAG.severity, reverse=True)
    assert view["statuses"]["stopped"] == statuses.count("stopped") > 0
    assert sum(view["statuses"].values()) == len(view["groups"])
    assert view["groups_more"] == 0


def test_an_application_has_its_copies_beside_its_lag() -> None:
    state = everything()
    state.recent.sample(GROUP, NOW_MS, 40, Positions(1, 60, 100), {"warmups": 1})
    state.recent.happenings.note(Happening(NOW_MS, "rebalance", "generation 6 → 7", None, GROUP))
    joined = MembershipChange(NOW_MS - 9_000, ("c", "d"), ("a",), 2, 1, 8_000)
    state.applications[GROUP].change = joined
    view = shown(state)
    (row,) = (row for row in view["groups"] if row["group"] == GROUP)
    application = row["application"]
    assert application["clients"] == len(state.applications[GROUP].newest.clients)
    assert sum(application["copies"].values()) == len(state.task_rows(GROUP))
    assert application["result"] == "match"
    assert application["change"] == {
        "at_ms": NOW_MS - 9_000,
        "text": "c, d joined, a left",
        "copies": 0,
        "rebalances": 2,
        "waits": 1,
        "waited_seconds": 8.0,
    }
    assert row["recent"] == [40]
    assert view["feed"][0] == {
        "at_ms": NOW_MS,
        "kind": "rebalance",
        "text": "generation 6 → 7",
        "group": GROUP,
    }


def test_of_many_groups_the_worst_are_shown_and_others_are_found_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overview, "GROUPS_SHOWN", 1)
    state = judged()
    assess(state)
    view = shown(state, JUDGED_MS)
    assert [row["status"] for row in view["groups"]] == ["stopped"]
    assert view["groups_more"] == len(state.group_names()) - 1
    assert [row["group"] for row in shown(state, JUDGED_MS, "KEEPing")["groups"]] == ["keeping-up"]
    assert shown(state, JUDGED_MS, "nobody")["groups"] == []


def test_a_group_that_fails_costs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    works = groups.group_line

    def fails(state: ClusterState, group: str) -> dict[str, Any]:
        if group == HOSTILE:
            raise ValueError("bad")
        return works(state, group)

    monkeypatch.setattr(groups, "group_line", fails)
    state = everything()
    names = {row["group"] for row in shown(state)["groups"]}
    assert names == set(state.group_names()) - {HOSTILE}


def test_a_connect_group_has_what_its_own_view_lists() -> None:
    cluster = settled()
    cluster.group.leave("W2")
    cluster.round()
    now_ms = cluster.group.now_ms
    (row,) = shown(cluster.state, now_ms)["groups"]
    view = done(connect_view(cluster.state, cluster.name, now_ms))
    for listed in ("workers", "connectors", "unassigned", "contradictions"):
        assert row["connect"][listed] == len(view[listed])
    assert row["connect"]["unassigned"] > 0
    assert row["connect"]["result"] == view["result"]
