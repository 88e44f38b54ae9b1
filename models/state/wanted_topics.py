"""The topics about which a cluster is asked: those with end offsets and those with replicas' racks that matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from caughtup.models.decisions.applications import Applications
from caughtup.models.decisions.deciding import may_depend_on
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.groups.table import GroupTable
from caughtup.models.ids import TopicPartition


def wanted_topics(
    committed: set[str], groups: GroupTable, applications: Applications
) -> Callable[[str], bool]:
    """Return a test for the topics whose end offsets matter to any group as of now.

    ``committed`` are the topics with commits, or of Connect. The test keeps no reference to the other arguments:
    another thread may call it while events are applied.
    """
    topics = set(committed)
    for group in groups.names():
        if (membership := groups.membership(group)) is not None:
            topics |= membership.topics
    for group in applications:
        configured = applications.parameters(group).changelogs or {}
        topics.update(topic for changelogs in configured.values() for topic in changelogs)
    prefixes = tuple(f"{group}-" for group in applications)
    return lambda topic: topic in topics or topic.startswith(prefixes)


def racked_topics(applications: Applications) -> Callable[[str], bool] | None:
    """Return a test for the topics by whose replicas' racks a leader may have assigned.

    They are those of undecided generations in which every member has a rack; None if there are
    none. The test keeps no reference to the applications.
    """
    tests = [
        may_depend_on(application.newest, applications.parameters(group))
        for group, application in applications.items()
        if application.pending and application.newest.is_racked
    ]
    return (lambda topic: any(test(topic) for test in tests)) if tests else None


def known_replicas(
    replicas: Mapping[TopicPartition, Sequence[str | None]], generation: StreamsGeneration
) -> Mapping[TopicPartition, Sequence[str | None]] | None:
    """Return the racks of replicas by which a leader may have assigned.

    None if it can't have, or if they aren't looked up yet.
    """
    if not generation.is_racked:
        return None
    known = {partition.topic for partition in replicas}
    return replicas if generation.source_topics.keys() <= known else None
