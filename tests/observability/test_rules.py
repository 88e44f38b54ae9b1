"""The alert rules: valid, tested, documented, and only about what is really measured."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.observability.repository import (
    OPERATING,
    ROOT,
    RULES,
    exposed_metrics,
    metrics_named_in,
    promtool,
    read_yaml,
)

TESTS = sorted((ROOT / "prometheus" / "tests").glob("*.test.yml"))
ALERTS: list[dict[str, Any]] = [
    rule for group in read_yaml(RULES)["groups"] for rule in group["rules"]
]


def test_promtool_accepts_the_rules_and_the_configuration() -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    syntax = ("check", "config", "--syntax-only", ROOT / "prometheus" / "prometheus.yml")
    checked = promtool(*syntax)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_and_stay_silent_as_their_tests_say(path: Any) -> None:
    tested = promtool("test", "rules", path)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_every_alert_is_tested_both_firing_and_silent(alert: dict[str, Any]) -> None:
    expected = [
        case["exp_alerts"]
        for path in TESTS
        for test in read_yaml(path)["tests"]
        for case in test["alert_rule_test"]
        if case["alertname"] == alert["alert"]
    ]
    assert any(expected), "no test shows it firing"
    assert any(not alerts for alerts in expected), "no test shows it silent"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_every_alert_is_about_metrics_that_exist(alert: dict[str, Any]) -> None:
    named = metrics_named_in(alert["expr"])
    assert named <= exposed_metrics().keys()
    assert named or alert["expr"].startswith("up{"), "it is about nothing of ours"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_every_alert_says_what_it_is_and_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in {"page", "ticket"}
    named = {"cluster_name"} if alert["alert"] != "CaughtupDown" else set()
    assert set(alert["annotations"]) == {"summary", "description", "runbook"} | named
    path, _, anchor = alert["annotations"]["runbook"].partition("#")
    assert ROOT / path == OPERATING
    headings = re.findall(r"^#+ (.+)$", OPERATING.read_text(), re.MULTILINE)
    assert anchor == alert["alert"].lower()
    assert alert["alert"] in headings


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_annotations_use_labels_that_the_alert_has(alert: dict[str, Any]) -> None:
    used = set(re.findall(r"\$labels\.(\w+)", str(alert["annotations"])))
    aggregated = re.match(r"\w+ by \(([^)]+)\)", alert["expr"])
    if aggregated:
        having = set(re.split(r",\s*", aggregated[1]))
    elif alert["expr"].startswith("up{"):
        having = {"instance", "job"}
    else:
        # `and on (…)`, `unless` and `offset` keep the labels of the left side, which comes first.
        having = set(exposed_metrics()[re.findall(r"\bcaughtup_\w+", alert["expr"])[0]])
    assert used <= having
