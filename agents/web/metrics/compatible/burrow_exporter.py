"""Metrics of burrow_exporter, with Burrow's statuses instead of verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from caughtup.agents.web.metrics.compatible.declaring import (
    cluster_label,
    folded,
    of_groups,
    of_logs,
    of_partitions,
)
from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_labels import Slice
from caughtup.agents.web.metrics.group_lines import SUM, Figures, escaped
from caughtup.agents.web.metrics.groups import committed, log_end_lag
from caughtup.models.histories.end_columns import NEVER_MS
from caughtup.models.polls.column_reader import Rows
from caughtup.models.state.cluster import ClusterState

_OK, _WARN, _ERR, _STOP, _STALL, _REWIND = range(2, 8)
#: Burrow's status for each verdict; it reports OK for what it can't evaluate.
_OF_PARTITIONS: Mapping[str | None, int] = {
    "ok": _OK,
    "unknown": _OK,
    "slow": _WARN,
    "diverging": _WARN,
    "rewound": _REWIND,
    "blocked": _STALL,
    "stalled": _STALL,
    "stopped": _STOP,
}
_OF_GROUPS = {name: min(status, _ERR) for name, status in _OF_PARTITIONS.items()}
_CLUSTER = cluster_label("cluster")
_LABELS = ("cluster", "group", "topic", "partition")


def _log_end(_: ClusterState, part: Slice) -> tuple[Figures, Rows]:
    return part.ends.end, part.ends.as_of_ms != NEVER_MS


def _partition_status(state: ClusterState, part: Slice) -> tuple[Figures, Rows]:
    found = []
    for group, partitions in part.groups:
        for partition in partitions:
            assessed = state.assessments.find(group, partition)
            found.append(0 if assessed is None else _OF_PARTITIONS[assessed.verdict])
    figures = np.array(found, np.int64)
    return figures, (figures > 0) & (part.ends.as_of_ms != NEVER_MS)


def _status(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    judged = scrape.state.assessments.verdicts.get(group)
    if judged is not None:
        labels = f'{_CLUSTER(scrape)}group="{escaped(group)}"'
        yield family.line_of(labels, _OF_GROUPS[judged.verdict])


BURROW_EXPORTER_FAMILIES = (
    of_partitions(
        "kafka_burrow_partition_lag",
        "Offsets up to the log's end",
        _LABELS,
        log_end_lag,
        before=_CLUSTER,
    ),
    of_partitions(
        "kafka_burrow_partition_current_offset",
        "Committed offset",
        _LABELS,
        committed,
        before=_CLUSTER,
    ),
    of_partitions(
        "kafka_burrow_partition_max_offset", "End of the log", _LABELS, _log_end, before=_CLUSTER
    ),
    of_partitions(
        "kafka_burrow_partition_status",
        "2 is OK, 3 WARN, 5 STOP, 6 STALL, 7 REWIND",
        _LABELS,
        _partition_status,
        before=_CLUSTER,
    ),
    folded(
        "kafka_burrow_total_lag",
        "Offsets up to the log's end, of all partitions",
        _LABELS[:2],
        log_end_lag,
        SUM,
        "group",
        before=_CLUSTER,
    ),
    of_groups("kafka_burrow_status", "2 is OK, 3 WARN, 4 ERR", _LABELS[:2], _status),
    of_logs(
        "kafka_burrow_topic_partition_offset",
        "End of the log",
        lambda log: log[2],
        before=_CLUSTER,
        labels=("cluster",),
    ),
)
