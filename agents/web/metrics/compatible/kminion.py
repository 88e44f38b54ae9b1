"""Metrics of kminion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import caughtup
from caughtup.agents.web.metrics.compatible.declaring import (
    folded,
    of_groups,
    of_logs,
    of_partitions,
    of_topics,
    single_series,
)
from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_lines import SUM, LabelNames, escaped
from caughtup.agents.web.metrics.groups import committed, log_end_lag
from caughtup.models.groups.membership import Membership

_NAMES = LabelNames("group_id", "topic_name", "partition_id")
_TOPIC = _NAMES[:2]
_GROUP = _NAMES[:1]
_LOG = ("topic_name", "partition_id")


def _membership(scrape: Scrape, group: str) -> Membership | None:
    return scrape.state.groups.membership(group)


def _info(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    if (of := _membership(scrape, group)) is not None:
        state = "Stable" if of.members else "Empty"
        yield family.line((group, of.group_type, state), state == "Stable")


def _members(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    if (of := _membership(scrape, group)) is not None:
        yield family.line((group,), len(of.members))


def _empty_members(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    if (of := _membership(scrape, group)) is not None:
        owners = {member.member_id for member in of.owners.values()}
        yield family.line((group,), sum(one.member_id not in owners for one in of.members))


def _topic_members(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    if (of := _membership(scrape, group)) is not None:
        pairs = {(topic, member.member_id) for (topic, _), member in of.owners.items()}
        yield from _by_topic(family, group, Counter(topic for topic, _ in pairs))


def _topic_partitions(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    if (of := _membership(scrape, group)) is not None:
        yield from _by_topic(family, group, Counter(topic for topic, _ in of.owners))


def _by_topic(family: Family, group: str, counts: Counter[str]) -> Iterator[bytes]:
    before = f'group_id="{escaped(group)}",topic_name='
    for topic, count in sorted(counts.items()):
        yield family.line_of(f'{before}"{escaped(topic)}"', count)


def _topic_info(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for topic, count in sorted(scrape.state.ends.partition_counts().items()):
        if scrape.state.watching.topic(topic):
            yield family.line((topic, str(count)), 1)


def _cluster_info(scrape: Scrape) -> tuple[tuple[str, ...], float] | None:
    observed = scrape.state.reassignments.cluster
    if observed is None or observed.brokers is None:
        return None
    controller = "" if observed.quorum_leader is None else str(observed.quorum_leader)
    return (str(len(observed.brokers)), scrape.state.cluster, controller), 1


_PREFIX = "kminion_kafka_"
KMINION_FAMILIES = (
    of_partitions(
        f"{_PREFIX}consumer_group_topic_partition_lag",
        "Offsets up to the log's end",
        _NAMES,
        log_end_lag,
        names=_NAMES,
    ),
    folded(
        f"{_PREFIX}consumer_group_topic_lag",
        "Offsets up to the log's end, of all partitions of a topic",
        _TOPIC,
        log_end_lag,
        SUM,
        "topic",
        names=_NAMES,
    ),
    folded(
        f"{_PREFIX}consumer_group_topic_offset_sum",
        "Committed offsets of all partitions of a topic",
        _TOPIC,
        committed,
        SUM,
        "topic",
        names=_NAMES,
    ),
    of_groups(
        f"{_PREFIX}consumer_group_info",
        "Whether the group has members",
        ("group_id", "protocol_type", "state"),
        _info,
    ),
    of_groups(f"{_PREFIX}consumer_group_members", "Members of the group", _GROUP, _members),
    of_groups(
        f"{_PREFIX}consumer_group_empty_members",
        "Members without a partition",
        _GROUP,
        _empty_members,
    ),
    of_groups(
        f"{_PREFIX}consumer_group_topic_members",
        "Members that are assigned partitions of a topic",
        _TOPIC,
        _topic_members,
    ),
    of_groups(
        f"{_PREFIX}consumer_group_topic_assigned_partitions",
        "Partitions of a topic that are assigned",
        _TOPIC,
        _topic_partitions,
    ),
    of_logs(
        f"{_PREFIX}topic_partition_high_water_mark",
        "End of the log",
        lambda log: log[2],
        names=_LOG,
    ),
    of_logs(
        f"{_PREFIX}topic_partition_low_water_mark",
        "Start of the log",
        lambda log: log[0],
        names=_LOG,
    ),
    of_topics(
        f"{_PREFIX}topic_high_water_mark_sum",
        "Ends of a topic's logs",
        "topic_name",
        lambda logs, _: logs[2],
    ),
    of_topics(
        f"{_PREFIX}topic_low_water_mark_sum",
        "Starts of a topic's logs",
        "topic_name",
        lambda logs, _: logs[0],
    ),
    Family(
        f"{_PREFIX}topic_info",
        "How many partitions a topic has",
        ("topic_name", "partition_count"),
        _topic_info,
        known=lambda scrape: scrape.health.is_alive,
    ),
    single_series(
        f"{_PREFIX}cluster_info",
        "Brokers that are registered, and the active controller",
        ("broker_count", "cluster_id", "controller_id"),
        _cluster_info,
    ),
    single_series(
        "kminion_exporter_up",
        "Whether the exporter works",
        ("version",),
        lambda _: ((f"caughtup {caughtup.__version__}",), 1),
    ),
    single_series(
        "kminion_exporter_offset_consumer_records_consumed_total",
        "Records read of __consumer_offsets",
        (),
        lambda scrape: ((), sum(scrape.state.counts.records.values())),
        is_counter=True,
    ),
)
