"""Metrics of partitions' logs, whoever reads them."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_labels import escaped

_PARTITION = ("cluster", "topic", "partition")


def _start_offsets(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    cluster = scrape.cluster_label
    for (topic, partition), ends in list(scrape.state.ends):
        labels = f'{cluster},topic="{escaped(topic)}",partition="{partition}"'
        yield family.line_of(labels, ends.start_offset)


def _end_offsets(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    cluster = scrape.cluster_label
    for (topic, partition), ends in list(scrape.state.ends):
        labels = f'{cluster},topic="{escaped(topic)}",partition="{partition}",isolation='
        yield family.line_of(f'{labels}"read_committed"', ends.last_stable_offset)
        yield family.line_of(f'{labels}"read_uncommitted"', ends.end_offset)


PARTITION_FAMILIES = (
    Family("caughtup_partition_start_offset", "Start of the log", _PARTITION, _start_offsets),
    Family(
        "caughtup_partition_end_offset",
        "End of the log",
        (*_PARTITION, "isolation"),
        _end_offsets,
    ),
)
