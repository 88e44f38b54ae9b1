"""The Grafana dashboard and its provisioning: they fit each other and what is really measured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.observability.repository import (
    CONNECT_DASHBOARD,
    DASHBOARD,
    OPERATING,
    ROOT,
    exposed_metrics,
    metrics_named_in,
    promtool,
    read_yaml,
)

VARIABLES = {"datasource", "cluster", "group"}


DASHBOARDS: list[dict[str, Any]] = [
    json.loads(path.read_text()) for path in (DASHBOARD, CONNECT_DASHBOARD)
]


def dashboard() -> dict[str, Any]:
    """Return the dashboard of everything but Connect."""
    return DASHBOARDS[0]


def panels(of: dict[str, Any] = DASHBOARDS[0]) -> list[dict[str, Any]]:
    return [panel for panel in of["panels"] if panel["type"] != "row"]


def every_panel() -> Iterator[dict[str, Any]]:
    for each in DASHBOARDS:
        yield from panels(each)


def expressions() -> Iterator[str]:
    for panel in every_panel():
        for target in panel["targets"]:
            yield target["expr"]
    for each in DASHBOARDS:
        for annotation in each["annotations"]["list"]:
            yield annotation["expr"]


def test_a_dashboard_has_the_variables_that_its_expressions_use() -> None:
    for each in DASHBOARDS:
        assert {v["name"] for v in each["templating"]["list"]} == VARIABLES
    used = {name for expr in expressions() for name in re.findall(r"\$(\w+)", expr)}
    assert used - {"__rate_interval"} <= VARIABLES


def test_no_two_dashboards_are_taken_for_one() -> None:
    assert {path.name for path in DASHBOARD.parent.glob("*.json")} == {
        DASHBOARD.name,
        CONNECT_DASHBOARD.name,
    }
    for of in ("uid", "title"):
        assert len({each[of] for each in DASHBOARDS}) == len(DASHBOARDS)


def test_every_expression_is_about_metrics_that_exist() -> None:
    for expression in expressions():
        named = metrics_named_in(expression)
        assert named <= exposed_metrics().keys(), expression
        assert named, expression
    for variable in (one for each in DASHBOARDS for one in each["templating"]["list"]):
        assert metrics_named_in(variable.get("definition", "")) <= exposed_metrics().keys()


def test_every_metric_is_drawn() -> None:
    drawn = {name for expression in expressions() for name in metrics_named_in(expression)}
    assert drawn == exposed_metrics().keys()


def test_expressions_group_and_match_by_labels_that_their_metrics_have() -> None:
    clause = re.compile(r"\b(?:by|on|ignoring) \(([^)]+)\)")
    for expression in expressions():
        named = metrics_named_in(expression)
        known = {label for name in named for label in exposed_metrics()[name]}
        for labels in clause.findall(expression):
            assert set(re.split(r",\s*", labels)) <= known, expression
        for selected in re.findall(r"{([^}]+)}", expression):
            assert set(re.findall(r"(\w+)=", selected)) <= known, expression


def test_legends_use_labels_that_the_result_has() -> None:
    for panel in every_panel():
        for target in panel["targets"]:
            used = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            named = metrics_named_in(target["expr"])
            known = {label for name in named for label in exposed_metrics()[name]}
            by = re.search(r"\bby \(([^)]+)\)", target["expr"])
            assert used <= (set(re.split(r",\s*", by[1])) if by else known), target["expr"]


def test_prometheus_can_parse_every_expression(tmp_path: Path) -> None:
    filled = []
    for number, expression in enumerate(expressions()):
        plain = re.sub(r"\$(cluster|group)", ".*", expression)
        plain = plain.replace("$__rate_interval", "1m")
        filled.append({"record": f"panel_{number}", "expr": plain})
    rules = tmp_path / "panels.yml"
    rules.write_text(json.dumps({"groups": [{"name": "panels", "rules": filled}]}))
    checked = promtool("check", "rules", rules)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert len(filled) > 20


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each["uid"])
def test_every_panel_says_what_it_shows_and_none_lies_on_another(dashboard: dict[str, Any]) -> None:
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert all(panel["description"] for panel in panels(dashboard))


def test_every_panel_asks_the_chosen_data_source() -> None:
    for panel in every_panel():
        for asked in (panel, *panel["targets"]):
            assert asked["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_provisioning_names_the_data_source_and_the_folder_of_the_compose_file() -> None:
    services = read_yaml(ROOT / "docker-compose.yml")["services"]
    provisioning = ROOT / "grafana" / "provisioning"
    source = read_yaml(provisioning / "datasources" / "prometheus.yml")["datasources"][0]
    assert source["type"] == "prometheus"
    host, port = re.fullmatch(r"http://(\w+):(\d+)", source["url"]).groups()  # type: ignore[union-attr]
    assert any(entry.endswith(f":{port}") for entry in services[host]["ports"])
    provider = read_yaml(provisioning / "dashboards" / "caughtup.yml")["providers"][0]
    mounts = dict(entry.split(":")[:2] for entry in services["grafana"]["volumes"])
    assert mounts["./grafana/dashboards"] == provider["options"]["path"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{provider['options']['path']}/{DASHBOARD.name}"


@pytest.mark.parametrize("name", sorted(exposed_metrics()))
def test_every_metric_is_documented_with_its_labels(name: str) -> None:
    documented = dict(
        re.findall(r"^\| `(caughtup_\w+)` \| ([^|]*) \|", OPERATING.read_text(), re.MULTILINE)
    )
    assert documented.keys() == exposed_metrics().keys()
    labels = tuple(re.findall(r"\w+", documented[name]))
    assert labels == tuple(label for label in exposed_metrics()[name] if label != "cluster")
