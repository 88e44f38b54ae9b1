"""The assignors of consumer groups (KIP-848) if all members subscribe to the same topics.

Source: UniformHomogeneousAssignmentBuilder and RangeAssignor of Kafka 4.3.1. Kafka iterates over
members and topics in the order of its hash tables; here they come in the order given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice

from caughtup.models.assignors.java.hash_map import JavaHashMap, copied_table
from caughtup.models.ids import TopicPartition

#: Member id → its partitions.
Partitions = Mapping[str, AbstractSet[TopicPartition]]


def assign_uniform(
    members: Partitions, topics: Mapping[str, int]
) -> dict[str, set[TopicPartition]]:
    """Assign partitions evenly; members keep what they have, as far as that is even.

    ``members`` have the partitions of their target assignments; ``topics`` maps names to numbers of
    partitions. If the number of partitions is no multiple of the number of members, a member may
    keep one more than the least share while there are such extra partitions.
    """
    owned = frozenset(one for own in members.values() for one in own)
    everything = [TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)]
    free = [one for one in everything if one not in owned]
    least, extras = divmod(len(everything), len(members))
    given: dict[str, set[TopicPartition]] = {}
    room: dict[str, int] = {}
    for place, (member, own) in enumerate(members.items()):
        quota = least + (extras > 0)
        extra = extras > 0
        kept: set[TopicPartition] = set()
        for topic in topics:
            for partition in _in_set_order(n for name, n in own if name == topic):
                one = TopicPartition(topic, partition)
                if quota > 0:
                    quota -= 1
                    kept.add(one)
                else:
                    free.append(one)
        if quota > 0 and extra and len(members) - place > extras:
            quota -= 1  # enough members come after it that one of them may have one more already
            extra = False
        given[member], room[member] = kept, quota
        extras -= extra
    left = iter(free)
    for member, quota in room.items():
        given[member].update(islice(left, quota))
    return given


def assign_range(members: Partitions, topics: Mapping[str, int]) -> dict[str, set[TopicPartition]]:
    """Assign each topic's partitions in ranges to members in the order of their ids.

    Their previous partitions don't matter. No member is static.
    """
    given: dict[str, set[TopicPartition]] = {member: set() for member in members}
    for topic, count in topics.items():
        share, extras = divmod(count, len(members))
        start = 0
        for place, member in enumerate(sorted(members)):
            end = start + share + (place < extras)
            given[member].update(TopicPartition(topic, number) for number in range(start, end))
            start = end
    return given


def _in_set_order(partitions: Iterable[int]) -> list[int]:
    """Return partitions in the order of a HashSet to which they were added in ascending order."""
    numbers = sorted(partitions)
    return list(JavaHashMap[int](int, copied_table(len(numbers)), numbers))
