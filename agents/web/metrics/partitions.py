"""Metrics of partitions' logs, with or without groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import add

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_labels import SLICE
from caughtup.agents.web.metrics.group_lines import escaped
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import sum_offsets

#: Log start, last stable offset and log end.
Offsets = tuple[int, int, int]

_PARTITION = ("cluster", "topic", "partition")


def _start_offsets(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for labels, offsets in _labelled(scrape):
        yield b"" if offsets is None else family.line_of(labels, offsets[0])


def _end_offsets(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for labels, offsets in _labelled(scrape):
        if offsets is None:
            yield b""
            continue
        isolation = f"{labels},isolation="
        yield family.line_of(f'{isolation}"read_committed"', offsets[1])
        yield family.line_of(f'{isolation}"read_uncommitted"', offsets[2])


def _labelled(scrape: Scrape) -> Iterator[tuple[str, Offsets | None]]:
    """Yield the labels and offsets of each partition, or of each topic with coarser granularity.

    Yields None after some partitions of a sum, so that other work can run.
    """
    if scrape.group_labels.detail.granularity == "partition":
        for (topic, number), offsets in known_partitions(scrape):
            labels = f'{scrape.cluster_label},topic="{escaped(topic)}",partition="{number}"'
            yield labels, offsets
        return
    for topic, sums, _ in topic_sums(scrape):
        yield f'{scrape.cluster_label},topic="{escaped(topic)}"', sums


def topic_sums(scrape: Scrape) -> Iterator[tuple[str, Offsets | None, int]]:
    """Yield each topic with the sums of its partitions' offsets, and their number.

    Yields None as sums after some partitions, so that other work can run.
    """
    sums: dict[str, Offsets] = {}
    counts: Counter[str] = Counter()
    for count, ((topic, _), offsets) in enumerate(known_partitions(scrape), 1):
        start, stable, end = map(add, sums.get(topic, (0, 0, 0)), offsets)
        sums[topic] = start, stable, end
        counts[topic] += 1
        if count % SLICE == 0:
            yield "", None, 0
    for topic, (start, stable, end) in sums.items():
        added = sum_offsets([start]), sum_offsets([stable]), sum_offsets([end])
        yield topic, added, counts[topic]


def known_partitions(scrape: Scrape) -> Iterator[tuple[TopicPartition, Offsets]]:
    """Yield each partition of a watched topic, with its offsets.

    If instances share the groups, of the topics of this one's: another lists the others, and may be
    cut off.
    """
    state = scrape.state
    ends, watched = state.ends, state.watching.topic
    wanted = state.wanted_topics() if state.held.are_shared else None
    for partition in ends.partitions():
        latest = ends.latest(partition)
        is_shown = watched(partition.topic) and (wanted is None or wanted(partition.topic))
        if latest is not None and is_shown:  # it may be deleted meanwhile
            offsets = latest.start_offset, latest.last_stable_offset, latest.end_offset
            yield partition, offsets


PARTITION_FAMILIES = (
    Family(
        "caughtup_partition_start_offset",
        "Offset of the first record in the log",
        _PARTITION,
        _start_offsets,
    ),
    Family(
        "caughtup_partition_end_offset",
        "Last stable offset (read_committed) or high watermark (read_uncommitted)",
        (*_PARTITION, "isolation"),
        _end_offsets,
    ),
)
