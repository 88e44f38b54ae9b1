"""Which worker cluster's topics are a group's."""

from __future__ import annotations

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
from caughtup.models.connect_clusters.topic_sets import TopicSet


@dataclass(slots=True)
class ClusterTopics:
    """What is known of a worker cluster from its topics. ``read`` are those read to their end."""

    configuration: Configuration = field(default_factory=Configuration)
    statuses: Statuses = field(default_factory=Statuses)
    offsets: SourceOffsets = field(default_factory=SourceOffsets)
    read: set[str] = field(default_factory=set)

    @property
    def read_so_far(self) -> tuple[int, int]:
        """Return what changes with whatever is read that a match depends on."""
        return self.configuration.next_offset, self.statuses.records

    @property
    def is_configured(self) -> bool:
        """Whether anything was read of the config topic."""
        return bool(self.configuration.next_offset)


class Match(NamedTuple):
    """A group's topics, None where they aren't known, and then why."""

    topics: TopicSet | None
    why: str = ""


def match(
    generation: ConnectGeneration,
    known: Mapping[TopicSet, ClusterTopics],
    told: TopicSet | None,
) -> Match:
    """Find a group's topics: those that settings tell, or those whose records name its workers.

    Where no worker wrote a status yet, they are those whose configuration has all that the group
    runs; and of several, those whose names begin as the group's does.
    """
    if told is not None:
        return Match(told) if told in known else Match(None, f"{told.config} does not exist")
    if not known:
        return Match(None, "no topics look like those of a worker cluster")
    workers = {worker_id(worker) for worker in generation.workers.values()}
    possible = [one for one in sorted(known) if _may_be(generation, known[one])]
    by_worker = [one for one in possible if known[one].statuses.workers() & workers]
    if not by_worker:
        # Another group's workers, with the same topics, may have written all of them anew.
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
    return Match(None, "no config topic has what it runs")


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
