"""Which releases of Kafka Streams a generation's leader may be of, by what it wrote on the wire."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.assignment.releases import Release, releases_of
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


def likely_releases(generation: StreamsGeneration) -> Span:
    """Return the families but for 3.2, which is tried once a decision contradicts all others.

    It writes what later ones write, and decides as they do unless several tasks wait: to ask it
    as well would double the decisions, for a release of which three patches were made.
    """
    low, high = leaders_releases(generation)
    return Span(max(low, Release.V3_3), high) if low == Release.V3_2 else Span(low, high)


def under_releases(hypotheses: Hypotheses, releases: Span, likely: Span) -> Hypotheses:
    """Return the hypotheses that are of these releases.

    Where none is, the application was upgraded, or downgraded: then its configs count as they
    were, under any of the ``likely`` releases that have them.
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
        if (met := one.algorithm.releases.meet(likely)) is not None
    )
    return joined(moved)
