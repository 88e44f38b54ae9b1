"""The alert rules: valid, tested, documented, and only about what is really measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from caughtup.agents.cli.rules.main import render_rules, thresholds
from caughtup.agents.process.health import EVENT_LOOP, OFFSETS, PUBLISHER, TOPICS_READER, Health
from caughtup.agents.web.metrics.exposition import exposition
from caughtup.agents.web.metrics.families import ExpositionSettings
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.group_lines import Detail
from caughtup.agents.web.metrics.service import process_families
from caughtup.models.watching import Objectives
from tests.agents.web.metrics.test_spark import looked
from tests.observability.repository import (
    OPERATING,
    ROOT,
    RULES,
    exposed_metrics,
    metrics_named_in,
    promtool,
    read_yaml,
)
from tests.support.connect.clusters import stormy
from tests.support.reassignments.reassigning import reassigning
from tests.support.states import NOW_MS, everything, judged

TESTS = sorted((ROOT / "prometheus" / "tests").glob("*.test.yml"))
ALERTS: list[dict[str, Any]] = [
    rule for group in read_yaml(RULES)["groups"] for rule in group["rules"]
]


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    """The cases of all tests of rules."""
    read = [read_yaml(path) for path in TESTS]
    return [case for one in read for test in one["tests"] for case in test["alert_rule_test"]]


def test_promtool_accepts_the_rules_and_the_configuration() -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    syntax = ("check", "config", "--syntax-only", ROOT / "prometheus" / "prometheus.yml")
    checked = promtool(*syntax)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_rules_are_what_the_command_makes_of_its_defaults() -> None:
    assert RULES.read_text() == render_rules({}), "run `make rules`"


def test_promtool_accepts_rules_with_other_thresholds_and_runbooks(tmp_path: Path) -> None:
    others = {"for": "1h30m", "severity": "ticket", "threshold": "0.5"}
    values = {each.name: others[each.name.rpartition(".")[2]] for each in thresholds()}
    made = tmp_path / "made.yml"
    made.write_text(render_rules(values, "https://example.com/caughtup/"))
    checked = promtool("check", "rules", made)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    alerts = {rule["alert"]: rule for group in read_yaml(made)["groups"] for rule in group["rules"]}
    assert alerts.keys() == {alert["alert"] for alert in ALERTS}
    for name, alert in alerts.items():
        expected = f"https://example.com/caughtup/docs/operating.md#{name.lower()}"
        assert alert["annotations"]["runbook_url"] == expected
        assert alert["labels"]["severity"] == "ticket"
        assert alert.get("for", "1h30m") == "1h30m"


def test_an_alert_leads_to_its_groups_address_whatever_the_group_is_called(tmp_path: Path) -> None:
    group = "a b/c+d?e#f%2F&é"
    (tmp_path / "made.yml").write_text(render_rules({}, page_base="https://example.com/"))
    series = f"caughtup_group_status{{cluster='c', group='{group}', status='stopped'}}"
    told = {
        "cluster_name": "c",
        "summary": f"The group {group} has stopped",
        "description": "It has records to read on c, and has not committed for more than three "
        "of its usual intervals.",
        "page_url": f"https://example.com/groups/{quote(group, safe='')}",
        "runbook": "docs/operating.md#caughtupgroupstopped",
    }
    labels = {"severity": "ticket", "cluster": "c", "group": group, "status": "stopped"}
    expected = {"exp_labels": labels, "exp_annotations": told}
    ready = {"series": "caughtup_offsets_reader_ready{cluster='c'}", "values": "1+0x40"}
    asked = {"eval_time": "5m", "alertname": "CaughtupGroupStopped", "exp_alerts": [expected]}
    test = {
        "interval": "15s",
        "input_series": [ready, {"series": series, "values": "1+0x40"}],
        "alert_rule_test": [asked],
    }
    path = tmp_path / "made.test.yml"
    path.write_text(json.dumps({"rule_files": ["made.yml"], "tests": [test]}))
    tested = promtool("test", "rules", path)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_of_a_group_leads_to_that_group(tmp_path: Path) -> None:
    path = tmp_path / "made.yml"
    path.write_text(render_rules({}, page_base="https://example.com"))
    for alert in (rule for group in read_yaml(path)["groups"] for rule in group["rules"]):
        told = alert["annotations"]
        of_group = "$labels.group " in told["summary"] + told["description"]
        assert ("/groups/" in told.get("page_url", "")) == of_group, alert["alert"]
        plain = told.get("page_url", "https://example.com/").split("{{")[0]
        address = plain.removeprefix("https://example.com")
        assert address in {
            "/",
            "/groups/",
            "/reassignments",
            "/streams",
            "/health",
            "/transactions",
        }


def test_promtool_accepts_the_metrics(tmp_path: Path) -> None:
    """Every metric there is, in the text that a scraper gets."""
    health = Health("the name", ready=True, reader_lag=1, polled_ms=NOW_MS)
    for part in (EVENT_LOOP, OFFSETS, TOPICS_READER, PUBLISHER):
        health.pulses.beat(part)
    health.pulses.tick()
    health.topic_problems = {("caughtup-lag", "partitions"): "2 partitions"}
    health.leaderless_partitions = 3
    settings = ExpositionSettings(objectives=Objectives([(".*", 60)]))
    seen = set()
    connect = stormy(NOW_MS - 1_000).state
    for state in (everything(), judged(), reassigning(), connect, looked(tmp_path)):
        for granularity in ("partition", "topic", "group"):
            labels = GroupLabels(Detail(granularity))
            pieces = exposition(state, health, labels, settings=settings, others=process_families())
            written = b"".join(pieces).decode()
            seen |= metrics_named_in(written)
            checked = promtool("check", "metrics", text=written)
            assert checked.returncode == 0, checked.stdout + checked.stderr
            assert not checked.stdout + checked.stderr
    assert seen >= exposed_metrics().keys()


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_and_stay_silent_as_their_tests_say(path: Any) -> None:
    tested = promtool("test", "rules", path)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_every_alert_is_tested_both_firing_and_silent(
    alert: dict[str, Any], cases: list[dict[str, Any]]
) -> None:
    expected = [case["exp_alerts"] for case in cases if case["alertname"] == alert["alert"]]
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
