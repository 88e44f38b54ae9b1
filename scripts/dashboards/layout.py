"""The layout of a dashboard: variables, annotations, panels and rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DatasourceVariable,
    QueryVariable,
    Row,
    TextBoxVariable,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from scripts.dashboards.links import TAG, between
from scripts.dashboards.panels import SOURCE
from scripts.dashboards.promql import came, promql

#: The page's address if the service runs beside its Prometheus and Grafana.
_PAGE = "http://127.0.0.1:8080"


class Mark(NamedTuple):
    """An annotation in every panel of a dashboard, whenever its expression has a value."""

    name: str
    expression: str
    text: str
    color: str


REBALANCES = Mark(
    "Rebalances",
    "changes(caughtup_group_generation{GROUP}[1m]) > 0",
    "{{group}}",
    "rgba(150,150,150,0.6)",
)
CONNECT_REBALANCES = REBALANCES._replace(
    expression="changes(caughtup_connect_generation{GROUP}[1m]) > 0"
)
MOVEMENTS = Mark(
    "Movements of tasks", came("caughtup_movements_total{GROUP}"), "{{group}} {{kind}}", "orange"
)
RECOMMENDATIONS = Mark(
    "Recommendations published",
    came("caughtup_recommendations_published_total{GROUP}"),
    "{{group}}",
    "blue",
)
REASSIGNMENTS = Mark(
    "Reassignments: joined the ISR, or ended",
    "changes(caughtup_reassignment_isr_joins_total{TOPIC}[1m]) > 0"
    " or changes(caughtup_reassignments_ended_total{CLUSTER}[1m]) > 0",
    "{{topic}} {{partition}} {{outcome}}",
    "rgba(80,150,90,0.7)",
)
STARTS = Mark(
    "Starts of caughtup",
    "caughtup_build_info{CLUSTER}"
    " and on (instance, job) (time() - process_start_time_seconds < 60)",
    "{{version}} on {{instance}}",
    "purple",
)


def group_variable(values: str) -> QueryVariable:
    """Return the variable ``group``: the groups of a metric."""
    return _choice("group", "Group", f"label_values({values}, group)")


def topic_variable(values: str) -> QueryVariable:
    """Return the variable ``topic``: the topics of a metric."""
    return _choice("topic", "Topic", f"label_values({values}, topic)")


def made(
    uid: str,
    title: str,
    description: str,
    *,
    variables: Sequence[QueryVariable] = (),
    marks: Sequence[Mark],
    top: Sequence[Any],
    rows: Mapping[str, Sequence[Any]],
) -> str:
    """Return a dashboard's JSON; ``top`` is always visible, each row once it is opened."""
    builder = (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["kafka", TAG])
        .timezone("browser")
        .refresh("15s")
        .time("now-1h", "now")
        .editable()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .variables([*_everywhere(), *variables, _page()])
        .annotations([_annotation(mark) for mark in marks])
        .links(list(between()))
    )
    for panel in top:
        builder.with_panel(panel)
    for name, panels in rows.items():
        row = Row(name)
        for panel in panels:
            row.with_panel(panel)
        builder.with_row(row)
    return _numbered(json.loads(json.dumps(builder.build(), cls=JSONEncoder)))


def _numbered(dashboard: dict[str, Any]) -> str:
    """Return a dashboard as JSON, with a number for each panel, by which Grafana links to it."""
    number = 0
    for panel in dashboard["panels"]:
        for each in (panel, *panel.get("panels", ())):
            number += 1
            each["id"] = number
    return json.dumps(_in_the_open(dashboard), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _in_the_open(value: Any) -> Any:
    """Remove the SDK's default that hides links and annotations in a menu."""
    if isinstance(value, dict):
        hidden = value.get("placement") == "inControlsMenu"
        return {k: _in_the_open(v) for k, v in value.items() if not (hidden and k == "placement")}
    return [_in_the_open(each) for each in value] if isinstance(value, list) else value


def _everywhere() -> tuple[DatasourceVariable, QueryVariable]:
    source = DatasourceVariable("datasource").label("Data source").type("prometheus")
    ready = "label_values(caughtup_offsets_reader_ready, cluster)"
    return source, _choice("cluster", "Cluster", ready)


def _choice(name: str, label: str, values: str) -> QueryVariable:
    query = promql(values)
    return (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .definition(query)
        .query({"query": query, "refId": name})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(VariableOption(text=["All"], value=["$__all"]))
    )


def _page() -> TextBoxVariable:
    return (
        TextBoxVariable("page")
        .label("caughtup's page")
        .description("The address of caughtup's page, without a / at its end: what links lead to.")
        .default_value(_PAGE)
        .current(VariableOption(text=_PAGE, value=_PAGE))
    )


def _annotation(mark: Mark) -> AnnotationQuery:
    return (
        AnnotationQuery()
        .name(mark.name)
        .datasource(SOURCE)
        .enable(True)
        .icon_color(mark.color)
        .expr(promql(mark.expression))
        .step("60s")
        .title_format(mark.name)
        .text_format(mark.text)
    )
