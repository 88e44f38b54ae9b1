"""A real Prometheus scrapes the real service: every panel has data, every rule evaluates."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.observability.repository import RULES, read_yaml
from tests.observability.test_dashboard import SET, panels
from tests.support.observability.scene import SECONDS, Scene

#: Two scrapes lie within it.
RATE_INTERVAL = "10s"
#: What is not in this scene: a Connect group, whose panels test_connect_dashboard.py has, a group that
#: rebalances without end, one of consumers (tests/integration/groups), and instances that share the
#: groups (tests/integration/service/test_shared.py).
ELSEWHERE = (
    "caughtup_connect_",
    "caughtup_group_share_start_offset",
    "caughtup_group_storm_rebalances",
    "caughtup_group_decisions_total",
    "caughtup_offsets_held_partitions",
    "caughtup_offsets_shared_partitions",
)
PANELS = [
    pytest.param(target, id=f"{uid} {panel['title']} {target['refId']}")
    for uid, dashboard in SET.items()
    for panel in panels(dashboard)
    for target in panel.get("targets", ())
    if not any(name in target["expr"] for name in ELSEWHERE)
]


def filled(expression: str, scene: Scene) -> str:
    """Fill an expression's variables in as Grafana does."""
    values = {
        "__rate_interval": RATE_INTERVAL,
        "cluster": scene.stage.cluster.cluster_id,
        "group": ".*",
        "topic": ".*",
    }
    return re.sub(r"\$(\w+)", lambda variable: values[variable[1]], expression)


@pytest.mark.parametrize("target", PANELS)
def test_every_expression_of_the_dashboards_has_data(scene: Scene, target: dict[str, Any]) -> None:
    expression = filled(target["expr"], scene)
    if target.get("instant"):
        found = scene.prometheus.instant(expression, scene.set_at)
    else:
        found = scene.prometheus.over(expression, scene.began, scene.set_at)
    assert found, f"no data: {expression}"


def test_what_happened_is_marked(scene: Scene) -> None:
    found = {
        mark["name"]: scene.prometheus.over(filled(mark["expr"], scene), scene.began, scene.set_at)
        for mark in SET["caughtup"]["annotations"]["list"]
    }
    labels = {name: [one["metric"] for one in series] for name, series in found.items()}
    assert [each["group"] for each in labels["Rebalances"]] == ["orders"]
    assert {each["group"] for each in labels["Movements of tasks"]} == {"orders"}
    assert {each["group"] for each in labels["Recommendations published"]} == {"orders"}
    (moved,) = labels["Reassignments: joined the ISR, or ended"]
    assert moved["outcome"] == "completed"
    (start,) = labels["Starts of caughtup"]
    assert start["version"]


def test_the_variables_offer_what_is_there(scene: Scene) -> None:
    offered = {}
    for variable in SET["caughtup"]["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(
                r"label_values\((.+), (\w+)\)", variable["definition"]
            ).groups()  # type: ignore[union-attr]
            offered[variable["name"]] = scene.prometheus.api(
                f"label/{label}/values", **{"match[]": filled(metric, scene)}
            )
    source = scene.stage.application.source
    assert {"ledger", "payments", source} <= set(offered.pop("topic"))
    assert offered == {
        "cluster": [scene.stage.cluster.cluster_id],
        "group": ["ledger-replay", "ledger-slow", "orders", "payments-audit", "spark:ledger-query"],
    }


def test_what_the_panels_say_is_what_was_staged(scene: Scene) -> None:
    def series(title: str) -> list[dict[str, Any]]:
        (panel, *_) = (
            panel for each in SET.values() for panel in panels(each) if panel["title"] == title
        )
        expression = filled(panel["targets"][0]["expr"], scene)
        return scene.prometheus.instant(expression, scene.set_at)

    def value(title: str) -> float:
        (found,) = series(title)
        return float(found["value"][1])

    assert value("Reader") == 1
    assert value("Warm-ups") == scene.warm_ups in (1, 2)
    assert value("Reassignments stuck") == 0
    assert value("Mismatches, 24 h") == 0
    assert value("Open transactions") == 1
    assert [one["value"][1] for one in series("Partitions without a commit")] == ["1"]
    assert 0 < value("Next probing rebalance") <= 600


def test_the_rules_evaluate_and_only_the_unreadable_record_raises_an_alert(scene: Scene) -> None:
    def rules() -> dict[str, Any]:
        groups = scene.prometheus.api("rules")["groups"]
        assert {group["file"] for group in groups} == {str(RULES)}
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    written = [rule["alert"] for group in read_yaml(RULES)["groups"] for rule in group["rules"]]
    deadline = time.monotonic() + SECONDS
    while any(rule["health"] == "unknown" for rule in rules().values()):
        assert time.monotonic() < deadline, "a rule was never evaluated"
        time.sleep(0.1)
    loaded = rules()
    assert sorted(loaded) == sorted(written)
    assert {name: rule.get("lastError") for name, rule in loaded.items()} == dict.fromkeys(written)
    assert {rule["health"] for rule in loaded.values()} == {"ok"}
    firing = {name for name, rule in loaded.items() if rule["state"] == "firing"}
    assert firing == {"CaughtupDecodeErrors"}
