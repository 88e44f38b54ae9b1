"""Range assignors: each topic's partitions in ranges, to its members in the order of their ids.

The clients' align partitions and members by rack as far as the ranges' sizes allow; the group
coordinator's doesn't.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, repeat

from caughtup.models.assignors.consumer.group import (
    Assignment,
    ConsumerGroupSpec,
    by_instance_id,
    by_instance_or_member_id,
    have_same_topics,
    partitions_of,
    racks_matter,
)
from caughtup.models.ids import TopicPartition


def assign_range(group: ConsumerGroupSpec) -> Assignment:
    """Return each member's partitions, unordered.

    Source: RangeAssignor of Kafka's clients 4.3.1 and 4.4.0.
    """
    if not any(member.rack for member in group.members.values()):
        return assign_coordinator_range(group)
    order = by_instance_id(group.members)
    topics = [_Topic(topic, group, members) for topic, members in _subscribers(group, order)]
    given: Assignment = {member: [] for member in group.members}
    if any(topic.by_rack for topic in topics):
        _match_racks(topics, given)
    for topic in topics:
        topic.assign_ranges(given)
    return given


def assign_librdkafka_range(group: ConsumerGroupSpec) -> Assignment:
    """Return each member's partitions, unordered.

    Topics with equal members and sizes keep their partitions together in a rack even if racks don't
    matter, but then members without a rack get none of these. Raises NotReproduced if the members
    have no order.

    Source: rdkafka_range_assignor.c of librdkafka 2.15.0.
    """
    order = by_instance_or_member_id(group.members)
    topics = [_Topic(topic, group, members) for topic, members in _subscribers(group, order)]
    given: Assignment = {member: [] for member in group.members}
    _match_racks(topics, given, only_with_rack=True)
    for topic in topics:
        topic.assign_ranges(given)
    return given


def assign_coordinator_range(group: ConsumerGroupSpec) -> Assignment:
    """Return each member's partitions, unordered. What it had doesn't matter.

    Source: RangeAssignor of the group coordinator 4.3.1 and 4.4.0.
    """
    given: Assignment = {member: [] for member in group.members}
    lists: dict[int, list[list[TopicPartition]]] = {}
    for topic, members in _subscribers(group, by_instance_id(group.members)):
        partitions = partitions_of(topic, group.topics[topic])
        share, extras = divmod(len(partitions), len(members))
        own = lists.get(id(members))
        if own is None:
            own = lists[id(members)] = [given[member] for member in members]
        if not share:
            for one, partition in zip(own, partitions, strict=False):
                one.append(partition)
            continue
        middle = extras * (share + 1)
        for start, one in zip(range(0, middle, share + 1), own, strict=False):
            one += partitions[start : start + share + 1]
        for start, one in zip(range(middle, len(partitions), share), own[extras:], strict=True):
            one += partitions[start : start + share]
    return given


def _subscribers(group: ConsumerGroupSpec, order: list[str]) -> list[tuple[str, list[str]]]:
    """Return the members of each topic that exists, in the order of the ranges."""
    members: dict[str, list[str]] = {topic: [] for topic, count in group.topics.items() if count}
    if order and have_same_topics(group):
        read = set(group.members[order[0]].topics)
        return [(topic, order) for topic in members if topic in read]
    for member in order:
        for topic in dict.fromkeys(group.members[member].topics):
            if topic in members:
                members[topic].append(member)
    return [(topic, own) for topic, own in members.items() if own]


class _Topic:
    """A topic while its partitions are assigned; members at most one over ``share`` each."""

    def __init__(self, name: str, group: ConsumerGroupSpec, members: list[str]) -> None:
        self.members, self.partitions = members, partitions_of(name, group.topics[name])
        self.share, self.extras = divmod(len(self.partitions), len(members))
        self.numbers: dict[str, int] = dict.fromkeys(members, 0)
        self.free = [True] * len(self.partitions)
        self.rack_of = {member: rack for member in members if (rack := group.members[member].rack)}
        #: The racks of each partition's replicas; none if no member has a rack.
        self.racks: Sequence[AbstractSet[str]] = ()
        if self.rack_of:
            known = group.racks.get(name, ())[: len(self.partitions)]
            self.racks = [*known, *repeat(frozenset[str](), len(self.partitions) - len(known))]
        self.by_rack = racks_matter(set(self.rack_of.values()), self.racks)

    def room(self, member: str) -> int:
        """Return how many partitions more the member may have."""
        return max(0, self.share + (self.extras > 0) - self.numbers[member])

    def assign(self, member: str, numbers: Sequence[int], given: Assignment) -> None:
        """Assign partitions to a member."""
        given[member].extend([self.partitions[number] for number in numbers])
        for number in numbers:
            self.free[number] = False
        self._take(member, len(numbers))

    def _take(self, member: str, count: int) -> None:
        self.numbers[member] += count
        if self.numbers[member] > self.share:
            self.extras -= 1

    def assign_matching(self, given: Assignment) -> None:
        """Assign each member the first partitions in its rack, up to its share."""
        in_rack: dict[str, list[int]] = {}
        for number, racks in enumerate(self.racks):
            for rack in racks:
                in_rack.setdefault(rack, []).append(number)
        candidates: dict[str | None, Iterator[int]] = {None: iter(range(len(self.partitions)))}
        candidates |= {rack: iter(numbers) for rack, numbers in in_rack.items()}
        partitions, free = self.partitions, self.free
        for member in self.members:
            numbers, room = candidates.get(self.rack_of.get(member)), self.room(member)
            if numbers is None or not room:
                continue
            own, before = given[member], room
            for number in numbers:
                if free[number]:
                    free[number] = False
                    own.append(partitions[number])
                    room -= 1
                    if not room:
                        break
            self._take(member, before - room)

    def assign_ranges(self, given: Assignment) -> None:
        """Assign the partitions that are left."""
        left = list(compress(self.partitions, self.free))
        start = 0
        for member in self.members:
            if start >= len(left):
                break
            has = self.numbers[member]
            end = start + self.share + (self.extras > 0) - has
            if end > start:
                own = left[start:end]
                given[member] += own
                if has + len(own) > self.share:
                    self.extras -= 1
                start = end


def _match_racks(
    topics: Sequence[_Topic], given: Assignment, *, only_with_rack: bool = False
) -> None:
    """Assign partitions by rack: topics with equal members and sizes keep their partitions together.

    Kafka puts a topic whose members have no racks among those of size 0, where nothing is assigned.
    ``only_with_rack``: a member without a rack matches no partition of several topics.
    """
    together: dict[tuple[frozenset[str], int], list[_Topic]] = {}
    for topic in topics:
        size = len(topic.partitions) if topic.rack_of else 0
        together.setdefault((frozenset(topic.members), size), []).append(topic)
    for (_, size), alike in together.items():
        if len(alike) > 1:
            _match_racks_together(alike, size, given, only_with_rack=only_with_rack)
        elif alike[0].by_rack:
            alike[0].assign_matching(given)


def _match_racks_together(
    topics: Sequence[_Topic], size: int, given: Assignment, *, only_with_rack: bool
) -> None:
    """Assign the partitions with one number to one member that all their replicas' racks match.

    Nothing of these topics is assigned before, so that a member has the same room in each.
    """
    first = topics[0]
    waiting: dict[str | None, deque[int]] = {}
    for place, member in enumerate(first.members):
        waiting.setdefault(first.rack_of.get(member), deque()).append(place)
    for number in range(size):
        racks = frozenset.intersection(*(frozenset(topic.racks[number]) for topic in topics))
        places = []
        for rack in racks if only_with_rack else (None, *racks):
            queue = waiting.get(rack)
            while queue and not first.room(first.members[queue[0]]):
                queue.popleft()  # a member's room never grows
            if queue:
                places.append(queue[0])
        if places:
            member = first.members[min(places)]
            for topic in topics:
                topic.assign(member, [number], given)
