"""Metrics of partitions' logs, whoever reads them."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_labels import escaped
from caughtup.models.offsets import EndOffsets

_PARTITION = ("cluster", "topic", "partition")


def _start_offsets(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for labels, ends in _labelled(scrape):
        yield family.line_of(labels, ends.start_offset)


def _end_offsets(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for labels, ends in _labelled(scrape):
        isolation = f"{labels},isolation="
        yield family.line_of(f'{isolation}"read_committed"', ends.last_stable_offset)
        yield family.line_of(f'{isolation}"read_uncommitted"', ends.end_offset)


def _labelled(scrape: Scrape) -> Iterator[tuple[str, EndOffsets]]:
    cluster, ends = scrape.cluster_label, scrape.state.ends
    for partition in ends.partitions():
        latest = ends.latest(partition)
        if latest is not None:  # it may have gone meanwhile
            topic, number = partition
            yield f'{cluster},topic="{escaped(topic)}",partition="{number}"', latest


PARTITION_FAMILIES = (
    Family("caughtup_partition_start_offset", "Start of the log", _PARTITION, _start_offsets),
    Family(
        "caughtup_partition_end_offset",
        "End of the log",
        (*_PARTITION, "isolation"),
        _end_offsets,
    ),
)
