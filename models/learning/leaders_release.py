"""Which releases of Kafka Streams a generation's leader may be of, by what it wrote on the wire."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.assignment.releases import releases_of
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.ranges import Hypotheses, Span, joined


def leaders_version(generation: StreamsGeneration) -> int:
    """Return the newest version of subscriptions that the leader writes.

    Where the leader couldn't be read, the oldest of what others write.
    """
    members = tuple(generation.members())
    own = [one.latest_version for one in members if one.member_id == generation.leader]
    return min(own or [one.latest_version for one in members])


def leaders_releases(generation: StreamsGeneration) -> Span:
    """Return the families that the leader may be of; there is one that is modelled."""
    found = releases_of(leaders_version(generation))
    return Span(found[0], found[-1])


def under_releases(hypotheses: Hypotheses, releases: Span) -> Hypotheses:
    """Return the hypotheses that are of these releases.

    Where none is, the application was upgraded, or downgraded: then its configs count as they
    were, under any of the releases that have them.
    """
    left = tuple(
        replace(one, releases=met)
        for one in hypotheses
        if (met := one.releases.meet(releases)) is not None
    )
    if left or not hypotheses:
        return left
    moved = (
        replace(one, releases=met)
        for one in hypotheses
        if (met := one.algorithm.releases.meet(releases)) is not None
    )
    return joined(moved)
