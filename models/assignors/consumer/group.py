"""A consumer group as its assignor sees it: members, their topics, and the topics' partitions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat
from operator import itemgetter

from caughtup.models.assignors.java.strings import in_string_order, utf16
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition

#: Partitions of a topic with more are not kept.
_MOST_KEPT = 1_000
#: A member's partitions, by member id.
Assignment = dict[str, list[TopicPartition]]


class AssignorFails(CaughtupError):  # noqa: N818 - Kafka's assignor is what fails
    """Kafka's assignor throws an exception for this group, so that the rebalance fails."""

    def __init__(self, message: str) -> None:
        super().__init__("assignor_fails", message)


class NotReproduced(CaughtupError):  # noqa: N818 - what Kafka's assignor does is another question
    """Kafka's assignor decides for this group, but not in a way that is reproduced here."""

    def __init__(self, message: str) -> None:
        super().__init__("unsupported", message)


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member: its subscription, and the partitions that it says it owns.

    ``generation`` is the one in which it owned them, None if it says none; for sticky it is in its
    user data. ``joined_generation``, which the sticky assignors compare it with, is that of its
    subscription. For the coordinator's assignors ``owned`` is its target assignment.
    """

    topics: tuple[str, ...]
    instance_id: str | None = None
    rack: str | None = None
    owned: Sequence[TopicPartition] = ()
    generation: int | None = None
    joined_generation: int | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupSpec:
    """What assignors are given: a group's members, and the partitions of the topics that exist (KIP-848).

    ``members`` are in the order in which the assignor iterates over them, ``topics`` (name → number
    of partitions) in that of its hash table of topics. ``racks`` has the racks of each partition's
    replicas for topics where they are known.
    """

    members: Mapping[str, ConsumerMember]
    topics: Mapping[str, int]
    racks: Mapping[str, Sequence[AbstractSet[str]]] = field(default_factory=dict)

    def replica_racks(self, partition: TopicPartition) -> AbstractSet[str]:
        """Return the racks of a partition's replicas; none if they are unknown."""
        of_topic = self.racks.get(partition.topic, ())
        return of_topic[partition.partition] if partition.partition < len(of_topic) else frozenset()


#: An assignor, for which everything that it decides by is in the group.
Assign = Callable[[ConsumerGroupSpec], Assignment]


def have_same_topics(group: ConsumerGroupSpec) -> bool:
    """Return whether all members, of which there is one at least, read the same topics."""
    named = next(iter(group.members.values())).topics
    first = set(named)
    return all(one.topics == named or set(one.topics) == first for one in group.members.values())


def partitions_of(topic: str, count: int) -> Sequence[TopicPartition]:
    """Return a topic's partitions; those of most topics are kept, since they recur in each rebalance."""
    return _kept_partitions(topic, count) if count <= _MOST_KEPT else _partitions(topic, count)


def _partitions(topic: str, count: int) -> tuple[TopicPartition, ...]:
    return tuple(map(TopicPartition, repeat(topic, count), range(count)))


_kept_partitions = lru_cache(maxsize=4096)(_partitions)


def by_instance_id(members: Mapping[str, ConsumerMember]) -> list[str]:
    """Return member ids: static members first, by instance id, then the others by member id.

    Source: AbstractPartitionAssignor.MemberInfo.compareTo.
    """
    static = [
        (utf16(member.instance_id), member_id)
        for member_id, member in members.items()
        if member.instance_id is not None
    ]
    static.sort(key=itemgetter(0))
    dynamic = [name for name, member in members.items() if member.instance_id is None]
    return [name for _, name in static] + in_string_order(dynamic)


def by_instance_or_member_id(members: Mapping[str, ConsumerMember]) -> list[str]:
    """Return member ids as librdkafka orders them: two static members by instance id, others by their own.

    Raises NotReproduced if that is no order, so that it depends on how the leader's C library sorts.

    Source: rd_kafka_group_member_cmp of librdkafka 2.15.0.
    """
    static = {name: one.instance_id for name, one in members.items() if one.instance_id is not None}
    others = sorted(members.keys() - static.keys())
    #: Between which of the others each static member is. The instance ids must not say otherwise.
    places = [(bisect_left(others, name), name) for name in sorted(static, key=static.__getitem__)]
    if others and places != sorted(places, key=itemgetter(0)):
        raise NotReproduced("librdkafka has no order of static members among others")
    for at, name in reversed(places):
        others.insert(at, name)
    return others


def racks_matter(members: AbstractSet[str], replicas: Iterable[AbstractSet[str]]) -> bool:
    """Return whether partitions are assigned by rack.

    ``members``: the racks of members; ``replicas``: those of each partition's replicas. They don't
    matter if no member is in the rack of a replica, or every partition has a replica in each rack.

    Source: AbstractPartitionAssignor.useRackAwareAssignment.
    """
    if not members:
        return False
    distinct = set(map(frozenset, replicas))
    everywhere = frozenset[str]().union(*distinct)
    return not everywhere.isdisjoint(members) and any(one != everywhere for one in distinct)
