"""The text of ``/metrics``: all metrics, made from the state without a request to Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics.applications import APPLICATION_FAMILIES
from caughtup.agents.web.metrics.connect import CONNECT_FAMILIES
from caughtup.agents.web.metrics.copies import COPY_FAMILIES, TASK_FAMILIES
from caughtup.agents.web.metrics.families import ExpositionSettings, Family, Scrape
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.agents.web.metrics.groups import GROUP_FAMILIES, GROUP_TOTALS
from caughtup.agents.web.metrics.partitions import PARTITION_FAMILIES
from caughtup.agents.web.metrics.reassignments import REASSIGNMENT_FAMILIES, REASSIGNMENT_TOTALS
from caughtup.agents.web.metrics.service import BUILD_FAMILIES, SERVICE_FAMILIES
from caughtup.agents.web.metrics.source import SOURCE_FAMILIES
from caughtup.agents.web.metrics.spark import PIPELINE_FAMILIES, SPARK_FAMILIES
from caughtup.agents.web.metrics.transactions import TRANSACTION_FAMILIES
from caughtup.models.state.cluster import ClusterState

#: caughtup's own metrics.
FAMILIES = (
    *GROUP_FAMILIES,
    *PARTITION_FAMILIES,
    *GROUP_TOTALS,
    *TASK_FAMILIES,
    *REASSIGNMENT_FAMILIES,
    *SERVICE_FAMILIES,
    *SOURCE_FAMILIES,
    *BUILD_FAMILIES,
    *REASSIGNMENT_TOTALS,
    *TRANSACTION_FAMILIES,
    *PIPELINE_FAMILIES,
    *APPLICATION_FAMILIES,
    *COPY_FAMILIES,
    *CONNECT_FAMILIES,
    *SPARK_FAMILIES,
)
#: The end of a complete text in OpenMetrics' format.
_OPENMETRICS_END = b"# EOF\n"


def exposition(
    state: ClusterState,
    health: Health,
    labels: GroupLabels | None = None,
    *,
    openmetrics: bool = False,
    settings: ExpositionSettings | None = None,
    others: Iterable[Family] = (),
) -> Iterator[bytes]:
    """Yield the whole of ``/metrics`` in small pieces. Unknown figures are absent, never 0 or -1.

    ``labels`` caches lines between scrapes. ``others`` are metrics that every process has, and
    those under other exporters' names.
    """
    kept = GroupLabels() if labels is None else labels  # an empty one is falsy
    scrape = Scrape(state, health, kept, now_ms(), settings or ExpositionSettings())
    for family in chain(valid_families(scrape), others):
        yield from family.text(scrape, openmetrics=openmetrics)
    yield _OPENMETRICS_END if openmetrics else b""


def valid_families(scrape: Scrape) -> Iterator[Family]:
    """Yield caughtup's own metrics that are valid now.

    Those of groups need a reader that has caught up: with half a log read, groups would seem to lag
    or to be gone.
    """
    health = scrape.health
    if health.is_alive:
        scrape.group_labels.keep_only(scrape.groups)
        yield from (*GROUP_FAMILIES, *PARTITION_FAMILIES, *GROUP_TOTALS)
        yield from TASK_FAMILIES
    if _is_cluster_wide(health):
        yield from REASSIGNMENT_FAMILIES
    yield from (*SERVICE_FAMILIES, *SOURCE_FAMILIES, *BUILD_FAMILIES)
    if _is_cluster_wide(health):
        yield from (*REASSIGNMENT_TOTALS, *PIPELINE_FAMILIES)
    if health.is_alive:
        yield from TRANSACTION_FAMILIES
    if health.is_alive:
        yield from (*APPLICATION_FAMILIES, *COPY_FAMILIES, *CONNECT_FAMILIES, *SPARK_FAMILIES)


def _is_cluster_wide(health: Health) -> bool:
    """Return whether this instance shows what is about no group."""
    return health.broken is None and health.standby is None and health.cluster_wide()
