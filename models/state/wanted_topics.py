"""Which topics' end offsets matter to any group."""

from __future__ import annotations

from collections.abc import Callable

from caughtup.models.decisions.applications import Applications
from caughtup.models.groups.table import GroupTable


def wanted_topics(
    committed: set[str], groups: GroupTable, applications: Applications
) -> Callable[[str], bool]:
    """Return a test for the topics whose end offsets matter to any group as of now.

    ``committed`` are the topics with commits. The test holds on to nothing of the others: another
    thread may call it while events come.
    """
    topics = set(committed)
    for group in groups.names():
        if (membership := groups.membership(group)) is not None:
            topics |= membership.topics
    for group in applications:
        given = applications.parameters(group).changelogs or {}
        topics.update(topic for changelogs in given.values() for topic in changelogs)
    prefixes = tuple(f"{group}-" for group in applications)
    return lambda topic: topic in topics or topic.startswith(prefixes)
