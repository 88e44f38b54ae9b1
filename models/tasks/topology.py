"""The changelog topics of each subtopology: from the settings, or inferred and marked so."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

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
            subtopology, why = earlier, "copies had more than any other's"
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
                f"{topic} belongs to subtopology {subtopology}: no other has no changelog"
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
