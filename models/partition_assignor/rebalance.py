"""A rebalance as the leader of a Kafka Streams group sees it before it decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from caughtup.models.assignment.configs import Configs
from caughtup.models.assignment.releases import NEWEST, Release
from caughtup.models.ids import ProcessId, TaskId, TopicPartition

#: The newest version of subscriptions in Kafka 4.3 (``LATEST_SUPPORTED_VERSION``).
LATEST_VERSION = 11


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """One consumer, which is one stream thread, and its subscription.

    ``end_point`` is its process's ``application.server`` as host and port, None without one.
    ``owned`` are the source partitions that it has. ``offset_sums`` has, for each stateful task
    found on disk or in memory, the sum of its changelog offsets, or -2 for a running active and -3
    if unknown. ``version`` is that of its subscription.
    """

    member_id: str
    process: ProcessId
    owned: tuple[TopicPartition, ...] = ()
    offset_sums: Mapping[TaskId, int] = field(default_factory=dict)
    end_point: tuple[str, int] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    version: int = LATEST_VERSION


@dataclass(frozen=True, slots=True)
class TopicsInfo:
    """The topics of a subtopology; its tasks are stateful if it has any kind of changelog.

    ``sources`` are all topics that it reads, repartition topics included. ``changelogs`` are those
    of its stores, and ``source_changelogs`` are sources from which stores are restored. Source:
    Kafka's internal TopicsInfo.
    """

    sources: tuple[str, ...]
    changelogs: tuple[str, ...] = ()
    source_changelogs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A valid rebalance. ``members`` are in the order in which the coordinator listed them.

    ``now_ms`` is the leader's clock and ``leader`` its process. ``partitions`` has the number of
    partitions of each source topic; ``new_topics`` are changelogs that this rebalance created.
    ``replicas`` has the rack of each replica, None for one without a rack. ``end_offsets`` are
    those of the changelogs and ``committed`` the group's offsets in sources from which stores are
    restored; None if Kafka could not be asked. ``release`` is the leader's.
    """

    name: str | None
    assignor: str
    configs: Configs
    now_ms: int
    leader: ProcessId
    subtopologies: Mapping[int, TopicsInfo]
    partitions: Mapping[str, int]
    new_topics: frozenset[str]
    replicas: Mapping[TopicPartition, Sequence[str | None]]
    end_offsets: Mapping[TopicPartition, int] | None
    committed: Mapping[TopicPartition, int] | None
    members: tuple[MemberSubscription, ...]
    release: Release = NEWEST
