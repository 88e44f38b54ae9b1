"""The round-robin assignor: all topics' partitions in turn, to the next member that reads the topic."""

from __future__ import annotations

from bisect import bisect_left

from caughtup.models.assignors.consumer.group import (
    Assignment,
    ConsumerGroupSpec,
    by_instance_id,
    by_instance_or_member_id,
    partitions_of,
)
from caughtup.models.assignors.java.strings import in_string_order
from caughtup.models.ids import TopicPartition


def assign_round_robin(group: ConsumerGroupSpec) -> Assignment:
    """Return each member's partitions, unordered.

    Source: RoundRobinAssignor of Kafka's clients 4.3.1 and 4.4.0.
    """
    return _assign_in_turn(group, by_instance_id(group.members))


def assign_librdkafka_round_robin(group: ConsumerGroupSpec) -> Assignment:
    """Return each member's partitions, unordered. Raises NotReproduced if the members have no order.

    Source: rdkafka_roundrobin_assignor.c of librdkafka 2.15.0.
    """
    return _assign_in_turn(group, by_instance_or_member_id(group.members))


def _assign_in_turn(group: ConsumerGroupSpec, order: list[str]) -> Assignment:
    lists: list[list[TopicPartition]] = [[] for _ in order]
    subscriptions = [group.members[member].topics for member in order]
    different = {topics: frozenset(topics) for topics in subscriptions}
    topics_of = [different[topics] for topics in subscriptions]
    read = frozenset[str]().union(*different)
    turn = 0
    for topic in in_string_order(read.intersection(group.topics)):
        if len(different) == 1:
            readers = list(range(len(order)))
        else:
            readers = [place for place, topics in enumerate(topics_of) if topic in topics]
        # The first reader at or after the turn, and from there on around the circle.
        first = bisect_left(readers, turn)
        circle = readers[first:] + readers[:first]
        partitions = partitions_of(topic, group.topics[topic])
        if len(partitions) <= len(circle):
            for place, partition in zip(circle, partitions, strict=False):
                lists[place].append(partition)
        else:
            for at, place in enumerate(circle):
                lists[place] += partitions[at :: len(circle)]
        if partitions:
            turn = (circle[(len(partitions) - 1) % len(circle)] + 1) % len(order)
    return dict(zip(order, lists, strict=True))
