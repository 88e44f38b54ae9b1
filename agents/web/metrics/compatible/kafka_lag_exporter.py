"""Metrics of kafka-lag-exporter; klag-exporter has the same."""

from __future__ import annotations

from caughtup.agents.web.metrics.compatible.declaring import (
    cluster_label,
    folded,
    of_logs,
    of_partitions,
)
from caughtup.agents.web.metrics.group_lines import MOST, SUM
from caughtup.agents.web.metrics.groups import MEASURE, committed, lag_seconds, log_end_lag

_CLUSTER = cluster_label("cluster_name")
_LABELS = ("cluster_name", "group", "topic", "partition")
_GROUP = _LABELS[:2]
_PREFIX = "kafka_consumergroup_group_"

KAFKA_LAG_EXPORTER_FAMILIES = (
    of_partitions(f"{_PREFIX}offset", "Committed offset", _LABELS, committed, before=_CLUSTER),
    of_partitions(
        f"{_PREFIX}lag", "Offsets up to the log's end", _LABELS, log_end_lag, before=_CLUSTER
    ),
    of_partitions(
        f"{_PREFIX}lag_seconds",
        "Age of the oldest unread record",
        _LABELS,
        lag_seconds,
        before=_CLUSTER,
        form=MEASURE,
    ),
    folded(
        f"{_PREFIX}max_lag",
        "Offsets up to the log's end, the most of any partition",
        _GROUP,
        log_end_lag,
        MOST,
        "group",
        before=_CLUSTER,
    ),
    folded(
        f"{_PREFIX}max_lag_seconds",
        "Age of the oldest unread record of any partition",
        _GROUP,
        lag_seconds,
        MOST,
        "group",
        before=_CLUSTER,
        form=MEASURE,
    ),
    folded(
        f"{_PREFIX}sum_lag",
        "Offsets up to the log's end, of all partitions",
        _GROUP,
        log_end_lag,
        SUM,
        "group",
        before=_CLUSTER,
    ),
    folded(
        f"{_PREFIX}topic_sum_lag",
        "Offsets up to the log's end, of all partitions of a topic",
        _LABELS[:3],
        log_end_lag,
        SUM,
        "topic",
        before=_CLUSTER,
    ),
    of_logs(
        "kafka_partition_latest_offset",
        "End of the log",
        lambda log: log[2],
        before=_CLUSTER,
        labels=("cluster_name",),
    ),
    of_logs(
        "kafka_partition_earliest_offset",
        "Start of the log",
        lambda log: log[0],
        before=_CLUSTER,
        labels=("cluster_name",),
    ),
)
