"""docs/reference/metrics.md: every family of /metrics, with its HELP text."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.agents.web.metrics.exposition import FAMILIES
from caughtup.agents.web.metrics.families import Family
from tests.support.reference.markdown import escaped, table

_HEAD = """\
# Metrics

Every metric of `/metrics`, with its HELP text, made of the code by `make reference`. \
[operating.md](../operating.md#what-does-a-metric-mean) has the values of their labels, and \
[protocols.md](../protocols.md) says how figures are computed and how wrong they can be.

Each metric also has the label `cluster`, the cluster's id. A figure that is unknown is absent. \
Metrics under other exporters' names: [migrating.md](../migrating.md).
"""
#: The sections, by the beginning of metrics' names; the first match counts.
_SECTIONS = {
    "caughtup_group_": "Groups",
    "caughtup_partition_": "Partitions",
    "caughtup_task_": "Copies of tasks",
    "caughtup_reassignment": "Reassignments",
    "caughtup_throttle": "Reassignments",
    "caughtup_connect_": "Connect",
    "caughtup_spark_": "Spark streams as groups",
    "caughtup_pipeline_": "Jobs on Spark",
    **dict.fromkeys(
        (
            "caughtup_acceptable_",
            "caughtup_catch_up_",
            "caughtup_exact_",
            "caughtup_movements_",
            "caughtup_plan_",
            "caughtup_probing_",
            "caughtup_rebalances_",
            "caughtup_recommendations_",
        ),
        "Applications",
    ),
    "caughtup_": "The service",
}


def metrics_page() -> str:
    """Return the page."""
    sections: dict[str, list[Family]] = {title: [] for title in _SECTIONS.values()}
    for family in FAMILIES:
        sections[_section(family.name)].append(family)
    parts = [_HEAD]
    for title, families in sections.items():
        parts += [f"## {title}", "", *table(("metric", "type", "labels", "HELP"), _rows(families))]
        parts.append("")
    return "\n".join(parts)


def _section(name: str) -> str:
    return next(title for start, title in _SECTIONS.items() if name.startswith(start))


def _rows(families: list[Family]) -> Iterator[tuple[str, ...]]:
    for family in families:
        labels = ", ".join(label for label in family.labels if label != "cluster")
        yield f"`{family.name}`", family.type, labels, escaped(family.documentation)
