"""The Grafana dashboards and their provisioning: they fit each other and what is really measured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caughtup.agents.web.page_views import ADDRESSES
from scripts.dashboards.__main__ import FILES
from tests.observability.repository import (
    DASHBOARDS,
    METRICS,
    OPERATING,
    OVERVIEW,
    ROOT,
    RULES,
    exposed_metrics,
    metrics_named_in,
    promtool,
    read_yaml,
)

#: Names that Grafana fills in itself.
BUILT_IN = {"__rate_interval", "__url_time_range"}
#: What Prometheus adds to each series of a scrape, and what every process tells of itself.
OF_SCRAPES = {"instance", "job"}
OF_PROCESSES = {"process_start_time_seconds"}
GRAFANA = {"type": "prometheus", "uid": "${datasource}"}


def by_uid() -> dict[str, dict[str, Any]]:
    """Return the dashboards as they are committed."""
    read = [json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))]
    found = {each["uid"]: each for each in read}
    assert len(found) == len(read), "two dashboards have one uid"
    return found


SET = by_uid()


def panels(of: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a dashboard's panels, those within collapsed rows among them."""
    inside = [each for panel in of["panels"] for each in (panel, *panel.get("panels", ()))]
    return [panel for panel in inside if panel["type"] != "row"]


def every_panel() -> Iterator[dict[str, Any]]:
    for each in SET.values():
        yield from panels(each)


def asked(of: dict[str, Any]) -> Iterator[str]:
    """Yield what a dashboard asks Prometheus for: its panels, and what is marked in them."""
    for panel in panels(of):
        yield from (target["expr"] for target in panel.get("targets", ()))
    for mark in of["annotations"]["list"]:
        yield mark["expr"]


def expressions() -> Iterator[str]:
    for each in SET.values():
        yield from asked(each)


def links_of(panel: dict[str, Any]) -> Iterator[str]:
    """Yield the addresses that a panel's series or rows lead to."""
    config = panel.get("fieldConfig", {})
    of_columns = [
        one["value"]
        for override in config.get("overrides", ())
        for one in override["properties"]
        if one["id"] == "links"
    ]
    for links in (config.get("defaults", {}).get("links", ()), *of_columns):
        yield from (link["url"] for link in links)


def test_the_dashboards_are_what_their_source_makes() -> None:
    assert {path.name for path in DASHBOARDS.iterdir()} == FILES.keys()
    for name, make in FILES.items():
        assert (DASHBOARDS / name).read_text() == make(), "run `make dashboards`"


def test_the_set_is_whole_and_the_overview_has_the_address_that_the_one_dashboard_had() -> None:
    rest = {"groups", "streams", "reassignments", "connect", "health"}
    assert SET.keys() == {"caughtup"} | {f"caughtup-{name}" for name in rest}
    assert json.loads(OVERVIEW.read_text())["uid"] == "caughtup"
    assert len({each["title"] for each in SET.values()}) == len(SET)


@pytest.mark.parametrize("uid", SET)
def test_a_dashboard_has_the_variables_that_it_uses(uid: str) -> None:
    has = [variable["name"] for variable in SET[uid]["templating"]["list"]]
    offered = [each.get("definition", "") for each in SET[uid]["templating"]["list"]]
    links = [url for panel in panels(SET[uid]) for url in links_of(panel)]
    text = " ".join((*asked(SET[uid]), *offered, *links))
    used = set(re.findall(r"\$\{?(\w+)", text)) - BUILT_IN - {"__field", "__data"}
    assert used | {"datasource"} == set(has)
    assert has[:2] == ["datasource", "cluster"]


@pytest.mark.parametrize("uid", SET)
def test_what_is_seen_at_once_is_a_screen_and_rows_are_collapsed(uid: str) -> None:
    rows = [panel for panel in SET[uid]["panels"] if panel["type"] == "row"]
    assert rows
    assert all(row["collapsed"] and row["panels"] for row in rows)
    at_once = [panel for panel in SET[uid]["panels"] if panel["type"] != "row"]
    assert 0 < len(at_once) <= 13
    assert max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in at_once) <= 20


@pytest.mark.parametrize("uid", SET)
def test_a_dashboard_leads_to_the_others_and_to_the_page(uid: str) -> None:
    to_page, to_others = SET[uid]["links"]
    assert to_page["url"] == "${page:raw}"
    assert (to_others["type"], to_others["tags"]) == ("dashboards", ["caughtup"])
    assert (to_others["includeVars"], to_others["keepTime"]) == (True, True)
    assert all("caughtup" in each["tags"] for each in SET.values())
    # The SDK's default hides them in a menu.
    assert "inControlsMenu" not in json.dumps(SET[uid])


def test_every_panel_leads_on_to_an_address_that_there_is() -> None:
    routes = [
        re.compile(address.replace("{name:", "(?P<name>").replace("}", ")", 1))
        for address in ADDRESSES
    ]
    for panel in every_panel():
        urls = [*links_of(panel)]
        assert urls or panel["type"] == "alertlist", panel["title"]
        for url in urls:
            if url.startswith("${page:raw}"):
                path = url.removeprefix("${page:raw}")
                assert any(route.fullmatch(path) for route in routes), url
                continue
            uid, _, chosen = url.removeprefix("/d/").partition("?")
            assert uid in SET, url
            assert set(re.findall(r"(?:^|&)var-(\w+)=", chosen)) <= {
                variable["name"] for variable in SET[uid]["templating"]["list"]
            }


def test_a_link_by_name_has_the_name_percent_encoded_from_a_label_that_there_is() -> None:
    found = 0
    for panel in every_panel():
        for label, form in (
            one
            for url in links_of(panel)
            for one in re.findall(r"\$\{__(?:field\.labels|data\.fields)\.(\w+):?(\w*)\}", url)
        ):
            found += 1
            assert form == "percentencode"
            expression = panel["targets"][0]["expr"]
            by = re.search(r"\bby \(([^)]+)\)", expression)
            named = metrics_named_in(expression)
            known = {each for name in named for each in exposed_metrics()[name]}
            assert label in (set(re.split(r",\s*", by[1])) if by else known), panel["title"]
    assert found > 20


def test_alerts_are_listed_by_the_names_that_they_have() -> None:
    (alerts,) = (panel for panel in every_panel() if panel["type"] == "alertlist")
    rules = [rule for group in read_yaml(RULES)["groups"] for rule in group["rules"]]
    assert all(rule["alert"].startswith(alerts["options"]["alertName"]) for rule in rules)


def test_what_is_marked_is_marked_where_it_matters() -> None:
    marks = {uid: [one["name"] for one in of["annotations"]["list"]] for uid, of in SET.items()}
    start = "Starts of caughtup"
    tasks = ["Rebalances", "Movements of tasks", "Recommendations published"]
    moved = "Reassignments: joined the ISR, or ended"
    assert marks == {
        "caughtup": [*tasks, moved, start],
        "caughtup-groups": ["Rebalances", start],
        "caughtup-streams": [*tasks, start],
        "caughtup-reassignments": [moved, start],
        "caughtup-connect": ["Rebalances", start],
        "caughtup-health": [start],
    }


def test_every_expression_is_about_metrics_that_exist() -> None:
    for expression in expressions():
        named = metrics_named_in(expression)
        assert named <= exposed_metrics().keys(), expression
        assert named, expression
    for variable in (one for each in SET.values() for one in each["templating"]["list"]):
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
            assert set(re.split(r",\s*", labels)) <= known | OF_SCRAPES, expression
        for selected in re.findall(r"{([^}]+)}", expression):
            assert set(re.findall(r"(\w+)=", selected)) <= known, expression


def test_legends_use_labels_that_the_result_has() -> None:
    for panel in every_panel():
        for target in panel.get("targets", ()):
            used = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            named = metrics_named_in(target["expr"])
            known = {label for name in named for label in exposed_metrics()[name]}
            by = re.search(r"\bby \(([^)]+)\)", target["expr"])
            assert used <= (set(re.split(r",\s*", by[1])) if by else known), target["expr"]


def test_prometheus_can_parse_every_expression(tmp_path: Path) -> None:
    filled = []
    for number, expression in enumerate(expressions()):
        plain = re.sub(r"\$(cluster|group|topic)", ".*", expression)
        plain = plain.replace("$__rate_interval", "1m")
        filled.append({"record": f"panel_{number}", "expr": plain})
    rules = tmp_path / "panels.yml"
    rules.write_text(json.dumps({"groups": [{"name": "panels", "rules": filled}]}))
    checked = promtool("check", "rules", rules)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert len(filled) > 20


@pytest.mark.parametrize("uid", SET)
def test_every_panel_says_what_it_shows_and_none_lies_on_another(uid: str) -> None:
    ids = [each["id"] for row in SET[uid]["panels"] for each in (row, *row.get("panels", ()))]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in panels(SET[uid]):
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["description"].endswith("."), panel["title"]


def test_every_panel_asks_the_chosen_data_source() -> None:
    for panel in every_panel():
        if panel["type"] != "alertlist":
            for one in (panel, *panel["targets"]):
                assert one["datasource"] == GRAFANA
    for mark in (one for each in SET.values() for one in each["annotations"]["list"]):
        assert mark["datasource"] == GRAFANA


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
    assert home == f"{provider['options']['path']}/{OVERVIEW.name}"


def test_every_metric_is_in_the_reference_with_its_labels() -> None:
    rows = re.findall(
        r"^\| `(caughtup_\w+)` \| \w+ \| ([^|]*) \|", METRICS.read_text(), re.MULTILINE
    )
    documented = {name: tuple(re.findall(r"\w+", labels)) for name, labels in rows}
    assert documented == {
        name: tuple(label for label in labels if label != "cluster")
        for name, labels in exposed_metrics().items()
    }


def test_the_metrics_and_labels_that_operating_explains_exist() -> None:
    text = OPERATING.read_text()
    for name in metrics_named_in(text):
        assert any(known.startswith(name) for known in exposed_metrics()), name
    for name, label in re.findall(r"`(caughtup_\w+)\{(\w+)", text):
        assert label in exposed_metrics()[name], name
