"""Lag under kafka_exporter's names, and with its labels, for dashboards that have them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import compress

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_lines import escaped
from caughtup.agents.web.metrics.groups import committed, figures_by_partition, log_end_lag

#: The label of the group ends as those lines do that are kept for our own names.
_BEFORE_GROUP = "consumer"
_LABELS = ("consumergroup", "topic", "partition")


def _groups(scrape: Scrape) -> list[str]:
    return scrape.groups


def _lag_sums(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    sums: dict[str, int] = {}
    for part in scrape.group_labels.slices(scrape.state, [group], scrape.isolated):
        ((_, partitions),) = part.groups
        lags, known = (column.tolist() for column in log_end_lag(scrape.state, part))
        for partition, lag in zip(compress(partitions, known), compress(lags, known), strict=True):
            sums[partition.topic] = sums.get(partition.topic, 0) + lag
        yield b""  # a turn for others in a group with many partitions
    for topic, lag in sorted(sums.items()):
        yield family.line_of(f'consumergroup="{escaped(group)}",topic="{escaped(topic)}"', lag)


def _members(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    membership = scrape.state.groups.membership(group)
    if membership is not None:
        yield family.line_of(f'consumergroup="{escaped(group)}"', len(membership.members))


KAFKA_EXPORTER_FAMILIES = (
    Family(
        "kafka_consumergroup_lag",
        "Offsets up to the log's end",
        _LABELS,
        partial(figures_by_partition, log_end_lag, before_group=_BEFORE_GROUP),
    ),
    Family(
        "kafka_consumergroup_current_offset",
        "Committed offset",
        _LABELS,
        partial(figures_by_partition, committed, before_group=_BEFORE_GROUP),
    ),
    Family(
        "kafka_consumergroup_lag_sum",
        "Offsets up to the log's end, of all partitions of a topic",
        _LABELS[:2],
        _lag_sums,
        _groups,
    ),
    Family(
        "kafka_consumergroup_members",
        "Members of the group",
        _LABELS[:1],
        _members,
        _groups,
    ),
)
