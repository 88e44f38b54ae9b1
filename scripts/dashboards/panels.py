"""The kinds of panels, and their common properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grafana_foundation_sdk.builders import stat as _stat
from grafana_foundation_sdk.builders import table as _table
from grafana_foundation_sdk.builders import timeseries as _timeseries
from grafana_foundation_sdk.builders.common import (
    GraphThresholdsStyleConfig,
    ReduceDataOptions,
    StackingConfig,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.builders.dashboard import Panel, ThresholdsConfig
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    DataSourceRef,
    GraphDrawStyle,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from scripts.dashboards.links import Link, rows_to
from scripts.dashboards.promql import promql

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

#: An expression and the legend of its series.
Series = tuple[str, str]
#: The properties that draw a threshold as a dashed line.
LIMIT = (
    DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "red"}),
    DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
    DynamicConfigValue("custom.fillOpacity", 0),
)
#: The properties that put seconds on a right-hand axis.
RIGHT_SECONDS = (
    DynamicConfigValue("unit", "s"),
    DynamicConfigValue("custom.axisPlacement", "right"),
)


def stat(
    title: str,
    description: str,
    expression: str,
    links: Sequence[Link],
    *,
    alarm: str | None = None,
    texts: Mapping[str, tuple[str, str]] | None = None,
    width: int = 4,
    height: int = 4,
) -> _stat.Panel:
    """Return a panel of one number: in the colour ``alarm`` from 1 on, or as a text by ``texts``."""
    results = {
        value: ValueMappingResult(text=text, color=color, index=index)
        for index, (value, (text, color)) in enumerate((texts or {}).items())
    }
    steps = [Threshold(None, "green"), Threshold(1, alarm)] if alarm else [Threshold(None, "text")]
    panel = (
        _stat.Panel()
        .unit("none")
        .decimals(0)
        .no_value("none")
        .thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        .color_mode(BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.NONE)
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .data_links([link.of_series() for link in links])
        .with_target(_query("A", (expression, "")).instant())
    )
    if results:
        panel.mappings([ValueMap(options=results)])
    return _common(panel, title, description, width, height)


def lines(
    title: str,
    description: str,
    *series: Series,
    links: Sequence[Link],
    unit: str = "short",
    least: float | None = 0,
    colors: Mapping[str, str] | None = None,
    stacked: bool = False,
    limits: Sequence[tuple[float, str]] = (),
    overrides: Mapping[str, Sequence[DynamicConfigValue]] | None = None,
    width: int = 8,
) -> _timeseries.Panel:
    """Return a chart; ``limits`` are drawn as lines, ``colors`` and overrides go by name."""
    steps = [Threshold(None, "green"), *(Threshold(value, color) for value, color in limits)]
    style = GraphThresholdsStyleMode.LINE if limits else GraphThresholdsStyleMode.OFF
    panel = (
        _timeseries.Panel()
        .unit(unit)
        .line_width(1)
        .fill_opacity(20 if stacked else 5)
        .show_points(VisibilityMode.NEVER)
        .draw_style(GraphDrawStyle.LINE)
        .stacking(StackingConfig().mode(StackingMode.NORMAL if stacked else StackingMode.NONE))
        .thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        .thresholds_style(GraphThresholdsStyleConfig().mode(style))
        .legend(
            VizLegendOptions()
            .display_mode(LegendDisplayMode.TABLE)
            .placement(LegendPlacement.RIGHT)
            .calcs(["lastNotNull", "max"])
            .show_legend(True)
        )
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
        .data_links([link.of_series() for link in links])
        .targets([_query(chr(65 + n), each) for n, each in enumerate(series)])
    )
    if least is not None:
        panel.min(least)
    for name, color in (colors or {}).items():
        fixed = DynamicConfigValue("color", {"mode": "fixed", "fixedColor": color})
        panel.override_by_name(name, [fixed])
    for name, properties in (overrides or {}).items():
        panel.override_by_name(name, list(properties))
    return _common(panel, title, description, width, 8)


def table(
    title: str,
    description: str,
    *expressions: str,
    columns: Mapping[str, str],
    links: Sequence[Link],
    units: Mapping[str, str] | None = None,
    width: int = 8,
) -> _table.Panel:
    """Return a table; ``columns`` has the title of each shown label or value, in their order."""
    shown = {
        "includeByName": dict.fromkeys(columns, True),
        "renameByName": dict(columns),
        "indexByName": {name: place for place, name in enumerate(columns)},
        "excludeByName": {},
    }
    queries = [_query(chr(65 + n), (each, "")) for n, each in enumerate(expressions)]
    panel = (
        _table.Panel()
        .show_header(True)
        .targets([query.instant().format(PromQueryFormat.TABLE) for query in queries])
        .with_transformation(DataTransformerConfig("merge", options={}))
        .with_transformation(DataTransformerConfig("organize", options=shown))
    )
    linked = columns[links[0].column or next(iter(columns))]
    panel.override_by_name(linked, [rows_to(links)])
    for name, unit in (units or {}).items():
        panel.override_by_name(name, [DynamicConfigValue("unit", unit)])
    return _common(panel, title, description, width, 8)


def alerts(title: str, description: str) -> Panel:
    """Return the list of pending and firing alerts of caughtup, including those on Prometheus."""
    states = {"firing": True, "pending": True, "error": True, "noData": False, "normal": False}
    options = {
        "viewMode": "list",
        "groupMode": "default",
        "groupBy": [],
        "maxItems": 50,
        "sortOrder": 3,  # by importance
        "dashboardAlerts": False,
        "alertName": "Caughtup",
        "alertInstanceLabelFilter": "",
        "stateFilter": states,
    }
    panel = Panel().type("alertlist").options(options)
    return panel.title(title).description(description).span(8).height(8)


def _query(ref: str, series: Series) -> Dataquery:
    expression, legend = series
    query = Dataquery().ref_id(ref).expr(promql(expression)).legend_format(legend)
    return query.datasource(SOURCE)


def _common(panel: Any, title: str, description: str, width: int, height: int) -> Any:
    named = panel.title(title).description(description).datasource(SOURCE)
    return named.span(width).height(height)
