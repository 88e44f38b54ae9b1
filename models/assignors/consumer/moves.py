"""The sticky assignors that other libraries took from Java's first one: balancing by single moves.

librdkafka's and aiokafka's give free partitions to the members with the fewest, and then move one
partition after the other while that helps. They differ in the order in which they look at
partitions, in how they remember moves, and in what fails.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from caughtup.models.assignors.consumer.group import AssignorFails, ConsumerGroupSpec, NotReproduced
from caughtup.models.ids import TopicPartition

#: The most moves of a decision: after some claims of two members aiokafka's never ends.
_MOST_MOVES = 20_000
#: A member's partitions, a set that keeps the order in which they were added.
Held = dict[TopicPartition, None]


class MovedPartitions(ABC):
    """Which partitions moved between which members, so that none of a topic moves back for another."""

    @abstractmethod
    def instead(self, one: TopicPartition, old: str, new: str) -> TopicPartition:
        """Return the partition that moves to the new owner: the one given, or one that came from it."""

    @abstractmethod
    def moved(self, one: TopicPartition, old: str, new: str) -> None:
        """Note that a partition moved."""


class Balancing:
    """A decision: ``given`` has each member's partitions, ``owner`` each partition's member.

    ``before`` has the member that had a partition in an earlier generation than its owner.
    ``revokes``: a member has to give up what it may not keep.
    """

    def __init__(self, group: ConsumerGroupSpec, moves: MovedPartitions) -> None:
        """Find the readers of each topic. Topics that don't exist, or have no partition, are left out."""
        self.group = group
        self.counts = {topic: count for topic, count in group.topics.items() if count}
        self.topics_of = {
            name: {topic for topic in member.topics if topic in self.counts}
            for name, member in group.members.items()
        }
        self.readers = Counter(topic for topics in self.topics_of.values() for topic in topics)
        self.given: dict[str, Held] = {name: {} for name in group.members}
        self.owner: dict[TopicPartition, str] = {}
        self.before: dict[TopicPartition, str] = {}
        self.revokes = False
        self._moves, self._left = moves, _MOST_MOVES
        self._order: list[tuple[int, str]] = []
        self._holders: dict[str, Counter[str]] = {}
        self._balanced: bool | None = None

    def exists(self, one: TopicPartition) -> bool:
        """Return whether a partition exists and a member reads its topic."""
        return one.topic in self.readers and one.partition < self.counts[one.topic]

    def read_alike(self) -> bool:
        """Return whether all members read the same topics."""
        topics = list(self.topics_of.values())
        return all(one == topics[0] for one in topics)

    def order(self) -> None:
        """Order members by the number of their partitions, and by their ids."""
        self._order = sorted((len(own), name) for name, own in self.given.items())

    def give(
        self,
        free: Sequence[TopicPartition],
        may_have: Callable[[str, TopicPartition], bool] | None = None,
    ) -> list[TopicPartition]:
        """Give each partition to the reader with the fewest that may have it; return those left."""
        left: list[TopicPartition] = []
        for one in free:
            for size, name in self._order:
                if one.topic in self.topics_of[name] and (not may_have or may_have(name, one)):
                    self.given[name][one] = None
                    self.owner[one] = name
                    self._resize(name, size, size + 1)
                    break
            else:
                left.append(one)
        return left

    def balance(
        self, every: Sequence[TopicPartition], free: Sequence[TopicPartition], *, first: bool
    ) -> None:
        """Move partitions, those that were free before others, in the order given.

        ``first``: no member had a partition, so that the outcome counts even if it is no better.
        """
        fixed = {name: own for name, own in self.given.items() if not self._can_change(name)}
        for name, own in fixed.items():
            del self.given[name]
            self._take_out(len(own), name)
        self._holders = {topic: Counter() for topic in self.counts}
        for name, own in self.given.items():
            for one in own:
                self._holders[one.topic][name] += 1
        kept = {name: dict(own) for name, own in self.given.items()}
        if not self.revokes:
            self._reassign([one for one in free if self.readers[one.topic] > 1])
        moved = self._reassign([one for one in every if self.readers[one.topic] > 1])
        if moved and not first and _imbalance(self.given) >= _imbalance(kept):
            self.given = kept
        self.given.update(fixed)

    def held(self, name: str) -> Held:
        """Return the partitions of a member that takes part in moves."""
        if name not in self.given:
            raise AssignorFails(f"{name} takes no part in the moves any more")
        return self.given[name]

    def _most(self, name: str) -> int:
        return sum(self.counts[topic] for topic in self.topics_of[name])

    def _can_change(self, name: str) -> bool:
        """Return whether a member can get a partition, or has one that another one reads, too."""
        own = self.given[name]
        return len(own) < self._most(name) or any(self.readers[one.topic] > 1 for one in own)

    def _reassign(self, partitions: Sequence[TopicPartition]) -> bool:
        """Move partitions until none can move any more; return whether one did."""
        performed = False
        while True:
            modified = False
            for one in partitions:
                if self._is_balanced():
                    break
                new = self._better(one)
                if new is not None:
                    self._move(one, new)
                    performed = modified = True
            if not modified:
                return performed

    def _better(self, one: TopicPartition) -> str | None:
        """Return the member that should have a partition instead of its owner; None to keep it."""
        if one not in self.owner:
            raise AssignorFails(f"{one} has no owner")
        size = len(self.held(self.owner[one]))
        had = self.before.get(one)
        if had is not None and size > len(self.held(had)) + 1:
            return had
        least, name = next(each for each in self._order if one.topic in self.topics_of[each[1]])
        return name if size > least + 1 else None

    def _move(self, wanted: TopicPartition, new: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise NotReproduced("the moves have no end, or too many")
        one = self._moves.instead(wanted, self.owner[wanted], new)
        old = self.owner[one]
        had, has = self.held(old), self.held(new)
        if one not in had or one in has:
            raise NotReproduced(f"{one} moves from {old}, which doesn't have it")
        self._moves.moved(one, old, new)
        del had[one]
        has[one] = None
        self.owner[one] = new
        self._resize(old, len(had) + 1, len(had))
        self._resize(new, len(has) - 1, len(has))
        self._holders[one.topic].update({new: 1, old: -1})
        self._balanced = None

    def _is_balanced(self) -> bool:
        """Return whether no member could get a partition of one that has more."""
        if not self._order:
            raise AssignorFails("no member takes part in the moves")
        if self._order[0][0] >= self._order[-1][0] - 1:
            return True
        if self._balanced is None:
            self._balanced = self._no_member_can_get_more()
        return self._balanced

    def _no_member_can_get_more(self) -> bool:
        largest = {
            topic: max((len(self.given[name]) for name, own in holders.items() if own), default=0)
            for topic, holders in self._holders.items()
        }
        return not any(
            size < self._most(name) and any(largest[topic] > size for topic in self.topics_of[name])
            for size, name in self._order
        )

    def _resize(self, name: str, old: int, new: int) -> None:
        self._take_out(old, name)
        insort(self._order, (new, name))

    def _take_out(self, size: int, name: str) -> None:
        at = bisect_left(self._order, (size, name))
        if self._order[at : at + 1] != [(size, name)]:
            raise AssignorFails(f"{name} takes no part in the moves any more")
        del self._order[at]


def most_first(
    given: Mapping[str, Sequence[TopicPartition]],
    take: Callable[[list[TopicPartition]], TopicPartition],
) -> list[TopicPartition]:
    """Return all members' partitions, each the next of the member that has the most left.

    ``take`` removes the next one from a member's partitions, and returns it.
    """
    left = {name: list(own) for name, own in given.items() if own}
    order = sorted((len(own), name) for name, own in left.items())
    ordered: list[TopicPartition] = []
    while order:
        size, name = order.pop()
        ordered.append(take(left[name]))
        if size > 1:
            insort(order, (size - 1, name))
    return ordered


def _imbalance(given: Mapping[str, Held]) -> int:
    """Return the sum of the differences between the sizes of all pairs of members."""
    sizes = sorted(map(len, given.values()))
    return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sizes))
