"""The group coordinator's uniform assignor: members keep what they have, as far as that is even.

A member's partitions before are its target assignment, whose topics are in the order of a HashMap,
and the partitions of each in that of a HashSet; here both are in the order of ``owned``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, islice
from operator import itemgetter

from caughtup.models.assignors.consumer.group import (
    Assignment,
    AssignorFails,
    ConsumerGroupSpec,
    ConsumerMember,
    have_same_topics,
    partitions_of,
)
from caughtup.models.assignors.java.hash_map import JavaHashMap, copied_table
from caughtup.models.ids import TopicPartition

#: How many times topics are balanced at most.
_ROUNDS = 16


def assign_uniform(group: ConsumerGroupSpec, *, homogeneous: bool | None = None) -> Assignment:
    """Return each member's partitions, unordered. Topics that don't exist are left out.

    ``homogeneous``: whether the coordinator takes the subscriptions for equal; None if it does so
    where they are. It doesn't compare a regular expression with a list of the same topics. Topics
    of equal subscriptions are in the order of a HashSet, others in that of their ids.

    Raises AssignorFails where Kafka's assignor throws.

    Source: UniformAssignor of the group coordinator 4.3.1 and 4.4.0.
    """
    if not group.members:
        return {}
    if homogeneous is None:
        homogeneous = have_same_topics(group)
    if homogeneous:
        read = set(next(iter(group.members.values())).topics)
        return _assign_same_topics(group, [topic for topic in group.topics if topic in read])
    return _MixedTopics(group).assigned()


def _assign_same_topics(group: ConsumerGroupSpec, topics: Sequence[str]) -> Assignment:
    """Assign partitions to members that all read the same topics.

    If the number of partitions is no multiple of the number of members, a member may keep one more
    than the least share while there are such extra partitions.

    Source: UniformHomogeneousAssignmentBuilder.
    """
    if not topics:
        return {member: [] for member in group.members}
    free, none_unread = _without_owner(group, topics)
    least, extras = divmod(sum(group.topics[one] for one in topics), len(group.members))
    read = frozenset(topics)
    given: Assignment = {}
    room: list[tuple[str, int]] = []
    for place, (name, member) in enumerate(group.members.items()):
        own = list(member.owned)
        if not none_unread:
            own = [one for one in own if one.topic in read]
        quota = least + (extras > 0)
        extra = extras > 0
        if len(own) > quota:
            free += own[quota:]
            del own[quota:]
        given[name] = own
        quota -= len(own)
        if quota > 0 and extra and len(group.members) - place > extras:
            quota -= 1  # enough members come after it that one of them may have one more already
            extra = False
        if quota > 0:
            room.append((name, quota))
        extras -= extra
    left = iter(free)
    for name, quota in room:
        given[name].extend(islice(left, quota))
    if next(left, None) is not None:
        raise AssignorFails("a partition is left, and no member has room")
    return given


def _without_owner(
    group: ConsumerGroupSpec, topics: Sequence[str]
) -> tuple[list[TopicPartition], bool]:
    """Return the topics' partitions without an owner, and whether members own none of other topics."""
    free = {topic: bytearray(b"\1" * group.topics[topic]) for topic in topics}
    none_unread = True
    for member in group.members.values():
        for topic, number in member.owned:
            try:
                free[topic][number] = 0
            except KeyError:
                none_unread = False
            except IndexError:
                pass  # a member keeps a partition that doesn't exist
    found = [compress(partitions_of(one, group.topics[one]), free[one]) for one in topics]
    return list(chain.from_iterable(found)), none_unread


def in_target_order(
    topics: Iterable[str], partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Return a target assignment's partitions in the order in which the assignor reads them.

    ``topics`` are in the order of the assignment's topics. The numbers of each are in that of a
    HashSet which is made of them in ascending order.
    """
    numbers: dict[str, list[int]] = {topic: [] for topic in topics}
    for one in sorted(partitions):
        numbers.setdefault(one.topic, []).append(one.partition)
    return [
        TopicPartition(topic, number)
        for topic, own in numbers.items()
        for number in in_hash_set_order_of(own)
    ]


def in_hash_set_order_of(numbers: Sequence[int]) -> list[int]:
    """Return different numbers in the order of a HashSet that is made of a list of them."""
    own = list(dict.fromkeys(numbers))
    return list(JavaHashMap[int](int, copied_table(len(own)), own))


class _MixedTopics:
    """One decision for members with different topics. Members are their places here.

    Source: UniformHeterogeneousAssignmentBuilder.
    """

    def __init__(self, group: ConsumerGroupSpec) -> None:
        self._group, self._names = group, list(group.members)
        readers_of: dict[str, list[int]] = {topic: [] for topic in group.topics}
        for place, member in enumerate(group.members.values()):
            for topic in dict.fromkeys(member.topics):
                if topic in readers_of:
                    readers_of[topic].append(place)
        self._readers = {topic: readers for topic, readers in readers_of.items() if readers}
        ranks = {topic: rank for rank, topic in enumerate(group.topics)}

        def key(topic: str) -> tuple[float, int, int]:
            readers = len(self._readers[topic])
            return -group.topics[topic] / readers, readers, ranks[topic]

        #: The topics, those with the most partitions for each reader first.
        self._topics = sorted(self._readers, key=key)
        self._owners = {topic: [-1] * group.topics[topic] for topic in self._topics}
        self._sizes = [0] * len(self._names)
        self._partitions = {
            topic: partitions_of(topic, group.topics[topic]) for topic in self._topics
        }
        #: Partitions in the target assignments of two members, which stay in the first one's, too.
        self._doubled: dict[tuple[int, TopicPartition], None] = {}

    def assigned(self) -> Assignment:
        """Return each member's partitions."""
        for place, member in enumerate(self._group.members.values()):
            if member.owned:
                self._keep(place, member)
        sizes = self._sizes
        for topic in self._topics:
            owners = self._owners[topic]
            if -1 in owners:
                free = [number for number, owner in enumerate(owners) if owner < 0]
                least_loaded = _ByLoad(sizes, self._readers[topic]).least
                for number, least in zip(free, least_loaded, strict=False):
                    owners[number] = least
                    sizes[least] += 1
        self._balance([topic for topic in self._topics if len(self._readers[topic]) > 1])
        given: list[list[TopicPartition]] = [[] for _ in self._names]
        give = [own.append for own in given]
        for topic, owners in self._owners.items():
            for one, owner in zip(self._partitions[topic], owners, strict=True):
                give[owner](one)
        for place, one in self._doubled:
            if one not in given[place]:
                given[place].append(one)
        return dict(zip(self._names, given, strict=True))

    def _keep(self, place: int, member: ConsumerMember) -> None:
        """Leave a member those of its partitions whose topics it reads."""
        owners_of = {one: self._owners[one] for one in member.topics if one in self._owners}
        kept = 0
        for one in member.owned:
            topic, number = one
            owners = owners_of.get(topic)
            if owners is None:
                continue
            if number >= len(owners):
                raise AssignorFails(f"{self._names[place]} has {one}, which isn't there")
            if owners[number] >= 0:
                self._doubled[owners[number], one] = None
            owners[number] = place
            kept += 1
        self._sizes[place] += kept

    def _balance(self, topics: Sequence[str]) -> None:
        """Balance topic by topic until none has changed in a whole round."""
        last = -1
        for _ in range(_ROUNDS):
            for place, topic in enumerate(topics):
                if place == last:
                    return
                if self._balance_topic(topic) or last < 0:
                    last = place

    def _balance_topic(self, topic: str) -> bool:
        """Move a topic's partitions from members with more to members with fewer partitions."""
        loads = itemgetter(*self._readers[topic])(self._sizes)
        if max(loads) - min(loads) <= 1:
            return False
        members = _ByLoad(self._sizes, self._readers[topic])
        owners = self._owners[topic]
        numbers: dict[int, list[int]] = {}
        for number, owner in enumerate(owners):
            numbers.setdefault(owner, []).append(number)
        moved = False
        while not members.is_balanced():
            while (most := members.next_most()) is not None and not numbers.get(most):
                members.exclude()
            if most is None:
                break
            number = numbers[most].pop()
            least = next(members.least)
            if members.is_balanced():
                break
            self._sizes[most] -= 1
            self._sizes[least] += 1
            owners[number] = least
            self._doubled.pop((most, self._partitions[topic][number]), None)
            moved = True
        return moved


class _ByLoad:
    """A topic's readers by their number of partitions, from which the least and the most loaded come.

    Both sides are ranges of members with equally many partitions. The sizes change meanwhile, only
    as the members come out: each member of a range has one more, or one fewer, before the range grows.

    Source: UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer.
    """

    def __init__(self, sizes: Sequence[int], members: Sequence[int]) -> None:
        """``sizes``: each member's number of partitions; ``members`` are ascending."""
        self._sizes = sizes
        self._order = sorted(members, key=sizes.__getitem__)
        first, last = sizes[self._order[0]], sizes[self._order[-1]]
        self._least_size = first - 1
        #: The least loaded members in turn, each of which gets a partition.
        self.least = chain.from_iterable(self._least_ranges())
        self._most_start = self._most_end = len(self._order)
        self._most_size, self._next_most = last + 1, len(self._order) - 1

    def is_balanced(self) -> bool:
        """Return whether the sizes on both sides differ by at most one."""
        return self._most_size - self._least_size <= 1

    def _least_ranges(self) -> Iterator[list[int]]:
        order, sizes, end = self._order, self._sizes, 0
        while True:
            self._least_size += 1
            while end < len(order) and sizes[order[end]] == self._least_size:
                end += 1
            yield order[:end]

    def next_most(self) -> int | None:
        """Return the next of the most loaded members, which loses a partition; None without one."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_size = self._sizes[self._order[self._most_start - 1]]
            else:
                self._most_size -= 1
            while (
                self._most_start > 0
                and self._sizes[self._order[self._most_start - 1]] == self._most_size
            ):
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        self._next_most -= 1
        return self._order[self._next_most + 1]

    def exclude(self) -> None:
        """Take out the member that came last: it has no partition of the topic to lose."""
        order, at, end = self._order, self._next_most + 1, self._most_end - 1
        order[at], order[end] = order[end], order[at]
        self._most_end = end
