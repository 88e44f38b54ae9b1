"""The topics of Connect worker clusters, found by name and shape, and matched with groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from caughtup.models.connect.generation import (
    ConnectGeneration,
    config_offset,
    owned_then,
    worker_id,
)
from caughtup.models.connect_clusters.configuration import Configuration
from caughtup.models.connect_clusters.statuses import SourceOffsets, Statuses

#: The word in a topic's name that distinguishes it from the other topics of its set.
_WORDS = {
    "config": re.compile(r"(?<![a-z])configs?(?![a-z])"),
    "status": re.compile(r"(?<![a-z])status(?:es)?(?![a-z])"),
    "offset": re.compile(r"(?<![a-z])offsets?(?![a-z])"),
}
#: The most sets that are read; with more, the settings have to name them.
MOST_SETS = 50


class TopicSet(NamedTuple):
    """The topics of a worker cluster, "" for an unknown one."""

    config: str
    status: str = ""
    offset: str = ""

    @property
    def topics(self) -> list[str]:
        """The known topics."""
        return [topic for topic in self if topic]


def find_topic_sets(partitions: Mapping[str, int], prefix: str) -> list[TopicSet]:
    """Return the sets among all topics (name → number of partitions), in order of their names.

    The names of a set differ in one word, and a config topic has one partition, as Connect
    requires. Topics with the service's own ``prefix`` are left out.
    """
    stems: dict[str, dict[str, str]] = {}
    for topic in sorted(partitions):
        if topic.startswith((prefix, "__consumer_offsets", "__transaction_state")):
            continue
        for kind, word in _WORDS.items():
            found = [*word.finditer(topic.lower())]
            if len(found) == 1:
                start, end = found[0].span()
                stem = f"{topic[:start]}*{topic[end:]}"
                stems.setdefault(stem, {}).setdefault(kind, topic)
    return [
        TopicSet(kinds["config"], kinds["status"], kinds.get("offset", ""))
        for _, kinds in sorted(stems.items())
        if "config" in kinds and "status" in kinds and partitions[kinds["config"]] == 1
    ][:MOST_SETS]


@dataclass(slots=True)
class ClusterTopics:
    """What a worker cluster's topics contain; ``read`` are those that were read to their end."""

    configuration: Configuration = field(default_factory=Configuration)
    statuses: Statuses = field(default_factory=Statuses)
    offsets: SourceOffsets = field(default_factory=SourceOffsets)
    read: set[str] = field(default_factory=set)

    @property
    def read_so_far(self) -> tuple[int, int]:
        """A value that changes with every record on which a match depends."""
        return self.configuration.next_offset, self.statuses.records

    @property
    def is_configured(self) -> bool:
        """Whether a record of the config topic was read."""
        return bool(self.configuration.next_offset)


class Match(NamedTuple):
    """A group's topics, or None and why they are unknown."""

    topics: TopicSet | None
    why: str = ""


def match(
    generation: ConnectGeneration,
    known: Mapping[TopicSet, ClusterTopics],
    configured: TopicSet | None,
) -> Match:
    """Return a group's topics: those of the settings, or those whose records name its workers.

    If no worker has written a status, they are those whose configuration has all that the group
    runs; if several match, those whose names begin with the group's name.
    """
    if configured is not None:
        return (
            Match(configured)
            if configured in known
            else Match(None, f"{configured.config} does not exist")
        )
    if not known:
        return Match(None, "caughtup found no topics of a worker cluster")
    workers = {worker_id(worker) for worker in generation.workers.values()}
    possible = [one for one in sorted(known) if _may_be(generation, known[one])]
    by_worker = [one for one in possible if known[one].statuses.workers() & workers]
    if not by_worker:
        # Workers of another group with the same topics may have overwritten all statuses.
        by_worker = [o for o in possible if known[o].statuses.earlier_workers() & workers]
    candidates = by_worker or [one for one in possible if not known[one].statuses.workers()]
    if len(candidates) > 1:
        named = [one for one in candidates if one.config.startswith(generation.group)]
        candidates = named or candidates
    if len(candidates) == 1:
        return Match(candidates[0])
    if candidates:
        names = ", ".join(one.config for one in candidates[:3])
        return Match(None, f"several topics may be its config topic: {names}")
    return Match(None, "no config topic contains the connectors that the group runs")


def _may_be(generation: ConnectGeneration, topics: ClusterTopics) -> bool:
    """Return whether a worker cluster's configuration has all that a group runs."""
    configuration = topics.configuration
    runs = owned_then(generation)
    connectors = {*runs.connectors, *(task.connector for task in runs.tasks)}
    then = configuration.at(max(config_offset(generation), 0))
    now = configuration.connectors
    return topics.is_configured and any(
        connectors <= one.keys() for one in (then, now) if one is not None
    )
