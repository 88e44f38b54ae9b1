"""The changelogs of subtopologies, and the end offset sums of tasks at one moment.

Changelogs are from the settings, or inferred and marked so; sums are intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.histories.rebalance_ends import NO_BOUNDS, ListedBounds
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import sum_offsets

#: The suffix of a store's own changelog topic.
CHANGELOG = "-changelog"
_REPARTITION = "-repartition"


@dataclass(frozen=True, slots=True)
class Changelogs:
    """The changelog topics of each subtopology, how they were found, and those that are ambiguous.

    ``unplaced`` are changelog topics of the application that fit several subtopologies: while there
    is one, the state of no task is fully known. ``tentative``: a topic that hasn't been read yet
    may change the result. ``placed`` are topics that fit several subtopologies by their names and
    widths, but only one by the copies' positions.
    """

    of: Mapping[int, tuple[str, ...]]
    provenance: str
    inferred: tuple[str, ...] = ()
    unplaced: tuple[str, ...] = ()
    tentative: bool = False
    placed: Mapping[str, int] = field(default_factory=dict)


def find_changelogs(
    group: str,
    source_topics: Mapping[str, int],
    partition_counts: Mapping[str, int],
    given: Mapping[int, tuple[str, ...]] | None,
    reported: Collection[int] = (),
    placed: Mapping[str, int] | None = None,
) -> Changelogs:
    """Return the changelog topics of each subtopology.

    The operator's settings (``given``) are taken as they are. Otherwise topics named
    ``<group>-<store>-changelog`` are placed in turn: by a repartition topic of the same store name
    (the DSL names both after the store), by a partition count that only one subtopology has, and
    the last topic without a subtopology to the last subtopology without a topic. If state is
    reported and no topic is left that could be its changelog, a table's source topic serves as one
    (KAFKA-3522), if there is just one source. ``source_topics``: source topic → subtopology;
    ``partition_counts``: topic → number of partitions, of all topics seen; ``reported``:
    subtopologies of which a client reports state; ``placed``: topic → subtopology, as the copies'
    positions showed earlier.
    """
    if given is not None:
        return Changelogs({s: tuple(t) for s, t in sorted(given.items())}, "settings")
    prefix = f"{group}-"
    topics = sorted(t for t in partition_counts if t.startswith(prefix) and t.endswith(CHANGELOG))
    widths = widths_of(source_topics, partition_counts)
    found: dict[int, list[str]] = {}
    inferred: list[str] = []
    unplaced: list[str] = []
    still: dict[str, int] = {}
    for topic in topics:
        store = topic.removesuffix(CHANGELOG)
        same_store = source_topics.get(store + _REPARTITION)
        same_width = [s for s, width in widths.items() if width == partition_counts[topic]]
        if same_store is not None:
            subtopology, why = same_store, f"{store}{_REPARTITION} feeds it"
        elif len(same_width) == 1:
            subtopology, why = same_width[0], f"only it has {partition_counts[topic]} partitions"
        elif (earlier := (placed or {}).get(topic)) in same_width and earlier is not None:
            subtopology, why = earlier, "copies had more offsets than the other changelogs have"
            still[topic] = earlier
        else:
            unplaced.append(topic)
            continue
        found.setdefault(subtopology, []).append(topic)
        inferred.append(f"{topic} belongs to subtopology {subtopology}: {why}")
    without = [s for s in widths if s not in found]
    if len(unplaced) == 1 and len(without) == 1:
        topic, subtopology = unplaced.pop(), without[0]
        if widths[subtopology] == partition_counts[topic]:
            found[subtopology] = [topic]
            inferred.append(
                f"{topic} belongs to subtopology {subtopology}: no other subtopology lacks a changelog"
            )
        else:
            unplaced.append(topic)
    tentative = False
    for subtopology in sorted(reported):
        own = [topic for topic, owner in sorted(source_topics.items()) if owner == subtopology]
        if subtopology not in found and not unplaced and len(own) == 1:
            found[subtopology] = own
            tentative = True
            inferred.append(
                f"{own[0]} is the changelog of subtopology {subtopology}, which it feeds: "
                "state is reported, and there is no other topic for it"
            )
    return Changelogs(
        {s: tuple(t) for s, t in sorted(found.items())},
        "inferred",
        tuple(inferred),
        tuple(unplaced),
        tentative,
        still,
    )


def widths_of(source_topics: Mapping[str, int], counts: Mapping[str, int]) -> dict[int, int]:
    """Return each subtopology's number of tasks: the partitions of its widest source topic."""
    widths: dict[int, int] = {}
    for topic, subtopology in sorted(source_topics.items()):
        widths[subtopology] = max(widths.get(subtopology, 0), counts.get(topic, 0))
    return dict(sorted(widths.items()))


@dataclass(frozen=True, slots=True)
class SourceCommits:
    """The application's commits on its own source topics: the topics, and the commits by partition.

    For the leader, a source that serves as a changelog ends at the committed offset, since nothing
    beyond that is in a store (KAFKA-10085). ``clock_allowance_ms`` is how far the coordinator's
    clock, which dates commits, may be ahead of ours.
    """

    topics: frozenset[str] = frozenset()
    histories: Mapping[TopicPartition, CommitHistory] = field(default_factory=dict)
    clock_allowance_ms: int = 0

    def bounds(self, partition: TopicPartition, before_ms: int, after_ms: int) -> tuple[int, int]:
        """Return bounds of the committed offset at a moment between two (ms).

        Without a commit it is 0. The offset before the oldest known commit counts as 0, too.
        """
        history = self.histories.get(partition)
        if history is None:
            return 0, 0
        high = history.committed_at(after_ms + self.clock_allowance_ms) or 0
        return min(history.committed_at(before_ms) or 0, high), high


def changelog_partitions(
    task: TaskId, changelogs: Changelogs, partition_counts: Mapping[str, int]
) -> list[TopicPartition]:
    """Return the changelog partitions of a task; none for a stateless one.

    A store's changelog has one for every task, even if it hasn't been seen yet. A source topic that
    serves as a changelog may have fewer.
    """
    return [
        TopicPartition(topic, task.partition)
        for topic in changelogs.of.get(task.subtopology, ())
        if topic.endswith(CHANGELOG)
        or task.partition < partition_counts.get(topic, task.partition + 1)
    ]


def end_offset_sums(
    tasks: Iterable[TaskId],
    changelogs: Changelogs,
    ends: EndOffsetTable,
    reported: Mapping[TaskId, int],
    before_ms: int,
    after_ms: int,
    committed: SourceCommits | None = None,
    listed: Mapping[TopicPartition, ListedBounds] | None = None,
) -> dict[TaskId, EndOffsetSum | None]:
    """Return bounds of every stateful task's end offset sum at a moment between two (ms).

    ``reported`` is the greatest offset sum that any client reported for a task: the end is no less,
    unless the report is on a changelog that was recreated since. ``committed`` has the
    application's sources, in case one of them serves as a changelog. ``listed`` are narrower bounds
    of some partitions' ends. None for a task without a
    sample since ``after_ms``. Stateless tasks are left out. Source:
    StreamsPartitionAssignor.populateClientStatesMap, log end offsets of the changelogs
    (read_uncommitted).
    """
    sources, narrower = committed or SourceCommits(), listed or {}
    counts = ends.partition_counts()
    sums: dict[TaskId, EndOffsetSum | None] = {}
    for task in sorted(tasks):
        partitions = changelog_partitions(task, changelogs, counts)
        if not partitions:
            continue
        bounds = [
            sources.bounds(partition, before_ms, after_ms)
            if partition.topic in sources.topics
            else narrower.get(partition, NO_BOUNDS).meet(
                ends.bounds(partition, before_ms, after_ms)
            )
            for partition in partitions
        ]
        known = [b for b in bounds if b is not None]
        if len(known) < len(bounds):
            sums[task] = None
            continue
        high = sum_offsets([b[1] for b in known])
        restored = reported.get(task, 0)
        low = max(sum_offsets([b[0] for b in known]), restored if restored <= high else 0)
        sums[task] = EndOffsetSum(low, high)
    return sums
