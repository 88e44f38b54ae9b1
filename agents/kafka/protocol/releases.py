"""Infer the Kafka release of brokers from the metadata.version that they support."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from caughtup.agents.kafka.protocol.cluster_answers import ApiVersions
from caughtup.agents.kafka.protocol.requests import Key

FEATURE = "metadata.version"

#: The first level of metadata.version that a release knows. Source: Kafka's ``MetadataVersion``.
_FIRST_LEVELS = (
    (1, (3, 0)),
    (2, (3, 1)),
    (3, (3, 2)),
    (4, (3, 3)),
    (8, (3, 4)),
    (9, (3, 5)),
    (12, (3, 6)),
    (15, (3, 7)),
    (20, (3, 8)),
    (21, (3, 9)),
    (22, (4, 0)),
    (26, (4, 1)),
    (28, (4, 2)),
    (30, (4, 3)),
)
#: The first level of a release that is not in the table.
_UNKNOWN_LEVEL = 31


def release(level: int) -> tuple[int, int] | None:
    """Return the release whose newest metadata.version is ``level``; None for an unknown one."""
    index = bisect_right(_FIRST_LEVELS, level, key=lambda first: first[0])
    if not index or level >= _UNKNOWN_LEVEL:
        return None
    return _FIRST_LEVELS[index - 1][1]


def oldest_release(brokers: Iterable[ApiVersions]) -> tuple[int, int] | None:
    """Return the release of the oldest of these brokers; None if one does not report its level."""
    levels = [broker.supported.get(FEATURE) for broker in brokers]
    known = [level for level in levels if level is not None]
    if not known or len(known) < len(levels):
        return None
    return release(min(known))


def zookeeper_decides(broker: ApiVersions) -> bool:
    """Return whether a broker's controller keeps its state in ZooKeeper.

    Only such brokers offer LeaderAndIsr; there are none since 4.0.
    """
    return Key.LEADER_AND_ISR in broker.requests
