"""Metrics of kafka_exporter, and those that the dashboards of its mixin add."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.agents.web.metrics.compatible.declaring import (
    folded,
    of_groups,
    of_logs,
    of_partitions,
    of_topics,
    single_series,
)
from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_labels import Slice
from caughtup.agents.web.metrics.group_lines import SUM, Figures, escaped
from caughtup.agents.web.metrics.groups import MEASURE, committed, lag_seconds, log_end_lag
from caughtup.models.polls.column_reader import Rows
from caughtup.models.state.cluster import ClusterState

_LABELS = ("consumergroup", "topic", "partition")


def _consumer(_: Scrape) -> str:
    """Return the prefix that turns the cached label ``group`` into ``consumergroup``."""
    return "consumer"


def _lag_millis(state: ClusterState, part: Slice) -> tuple[Figures, Rows | None]:
    seconds, known = lag_seconds(state, part)
    return seconds * 1000, known


def _members(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    membership = scrape.state.groups.membership(group)
    if membership is not None:
        yield family.line_of(f'consumergroup="{escaped(group)}"', len(membership.members))


def _brokers(scrape: Scrape) -> tuple[tuple[str, ...], float] | None:
    observed = scrape.state.reassignments.cluster
    if observed is None or observed.brokers is None:
        return None
    return (), len(observed.brokers)


KAFKA_EXPORTER_FAMILIES = (
    of_partitions(
        "kafka_consumergroup_lag",
        "Offsets up to the log's end",
        _LABELS,
        log_end_lag,
        before=_consumer,
    ),
    of_partitions(
        "kafka_consumergroup_current_offset",
        "Committed offset",
        _LABELS,
        committed,
        before=_consumer,
    ),
    folded(
        "kafka_consumergroup_lag_sum",
        "Offsets up to the log's end, of all partitions of a topic",
        _LABELS[:2],
        log_end_lag,
        SUM,
        "topic",
        before=_consumer,
    ),
    folded(
        "kafka_consumergroup_current_offset_sum",
        "Committed offsets of all partitions of a topic",
        _LABELS[:2],
        committed,
        SUM,
        "topic",
        before=_consumer,
    ),
    of_partitions(
        "kafka_consumergroup_uncommitted_offsets",
        "Offsets up to the log's end",
        _LABELS,
        log_end_lag,
        before=_consumer,
    ),
    of_partitions(
        "kafka_consumer_lag_millis",
        "Age of the oldest unread record in ms",
        _LABELS,
        _lag_millis,
        before=_consumer,
        form=MEASURE,
    ),
    of_groups("kafka_consumergroup_members", "Members of the group", _LABELS[:1], _members),
    of_logs("kafka_topic_partition_current_offset", "End of the log", lambda log: log[2]),
    of_logs("kafka_topic_partition_oldest_offset", "Start of the log", lambda log: log[0]),
    of_topics("kafka_topic_partitions", "Partitions of the topic", "topic", lambda _, count: count),
    single_series("kafka_brokers", "Brokers that are registered", (), _brokers),
)
