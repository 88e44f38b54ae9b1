"""The releases of Kafka Streams that a generation's leader may have, by what it wrote."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.assignment.releases import Release, releases_of
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.ranges import Hypotheses, IntSpan, joined


def leaders_version(generation: StreamsGeneration) -> int:
    """Return the newest version of subscriptions that the leader supports.

    If the leader's subscription is unreadable, the oldest of the other members' versions.
    """
    members = tuple(generation.members())
    own = [one.latest_version for one in members if one.member_id == generation.leader]
    return min(own or [one.latest_version for one in members])


def leaders_releases(generation: StreamsGeneration) -> IntSpan:
    """Return the families of releases that the leader may have; at least one must be modelled."""
    found = releases_of(leaders_version(generation))
    return IntSpan(found[0], found[-1])


def likely_releases(generation: StreamsGeneration) -> IntSpan:
    """Return the same families without 3.2, which is tried only if all others are contradicted.

    3.2 writes the same version as later releases, and decides as they do unless several tasks wait.
    Testing it each time would double the decisions, for a release that had only three patches.
    """
    low, high = leaders_releases(generation)
    return IntSpan(max(low, Release.V3_3), high) if low == Release.V3_2 else IntSpan(low, high)


def under_releases(hypotheses: Hypotheses, releases: IntSpan, likely: IntSpan) -> Hypotheses:
    """Return the hypotheses that hold under these releases.

    If there are none, the application was upgraded or downgraded: then its configs stay as they
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
