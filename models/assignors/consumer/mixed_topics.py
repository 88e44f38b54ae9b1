"""The sticky assignors' decision if members read different topics.

Members keep what they own, partitions that are left go to the members with the fewest, and then
partitions move from members with more to members with fewer, as long as that helps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from heapq import heapify, heapreplace

from caughtup.models.assignors.consumer.group import (
    Assignment,
    AssignorFails,
    ConsumerGroupSpec,
    NotReproduced,
)
from caughtup.models.assignors.consumer.member_racks import MemberRacks
from caughtup.models.assignors.java.hash_map import JavaHashMap
from caughtup.models.assignors.java.strings import hash_code, utf16
from caughtup.models.ids import TopicPartition

_NO_GENERATION = -1


class MixedTopics:
    """One decision.

    Source: AbstractStickyAssignor.GeneralAssignmentBuilder. Kafka looks through all partitions after
    each one to see whether the group is balanced; here only what changed is looked at again.
    """

    def __init__(self, group: ConsumerGroupSpec, racks: MemberRacks, owned: Assignment) -> None:
        """``owned``: each member's partitions before, in the order of Kafka's hash table."""
        self._racks, self._owned, self._members = racks, owned, group.members
        self._rank = {name: place for place, name in enumerate(sorted(group.members, key=utf16))}
        self._topics_of = {
            name: [topic for topic in member.topics if topic in group.topics]
            for name, member in group.members.items()
        }
        self._readers: dict[str, list[str]] = {topic: [] for topic in group.topics}
        for name, topics in self._topics_of.items():
            for topic in topics:
                self._readers[topic].append(name)
        order = sorted(group.topics, key=lambda topic: (len(self._readers[topic]), utf16(topic)))
        self._counts = {topic: group.topics[topic] for topic in order}
        self._all = sum(self._counts.values())
        self._given: dict[str, dict[TopicPartition, None]] = {}
        self._owner: dict[TopicPartition, str] = {}
        self._size: dict[str, int] = {}
        self._most = {name: self._most_partitions(name) for name in group.members}
        self._balance = _Balance(self._readers, self._topics_of, self._most, self._size)
        self._moves = _Moves()

    def assigned(self) -> Assignment:
        """Return each member's partitions.

        Raises AssignorFails where Kafka's assignor throws, and NotReproduced if a member owns a
        partition beyond the end of its topic.
        """
        previous = self._previous_owners()
        revoked = self._keep()
        free = [one for one in self._partitions(self._counts) if one not in self._owner]
        begins = not any(self._size.values())
        left = self._assign(free, by_rack=True) if self._racks.rack_of else free
        self._assign(left, by_rack=False)
        movable = [topic for topic in self._counts if len(self._readers[topic]) > 1]
        taking_part = {name for name in self._given if self._takes_part(name)}
        self._balance.begin(taking_part, self._owner)
        before = {name: dict(self._given[name]) for name in taking_part}
        score = _score(self._size[name] for name in taking_part)
        if not revoked:
            several = set(movable)
            self._even_out([one for one in free if one.topic in several], previous)
        moved = self._even_out(list(self._partitions(movable)), previous)
        if moved and not begins and _score(self._size[name] for name in taking_part) >= score:
            self._given.update(before)
        return {name: list(own) for name, own in self._given.items()}

    def _partitions(self, topics: Collection[str]) -> Iterator[TopicPartition]:
        for topic in topics:
            for number in range(self._counts[topic]):
                yield TopicPartition(topic, number)

    def _previous_owners(self) -> dict[TopicPartition, str]:
        """Return the owners that partitions had in generations before the latest one."""
        generations = {
            name: _NO_GENERATION if member.generation is None else member.generation
            for name, member in self._members.items()
        }
        latest = max(_NO_GENERATION, *generations.values())
        found: dict[TopicPartition, tuple[str, int]] = {}
        for name, member in self._members.items():
            if generations[name] < latest:
                for one in member.owned:
                    if one not in found or generations[name] > found[one][1]:
                        found[one] = (name, generations[name])
        return {one: name for one, (name, _) in found.items()}

    def _keep(self) -> bool:
        """Let members keep what they own and still read; return whether anything is revoked."""
        revoked = False
        for name, owned in self._owned.items():
            reads = set(self._members[name].topics)
            kept: dict[TopicPartition, None] = {}
            for one in owned:
                if one.partition >= self._counts[one.topic]:
                    # Kafka then assigns some partitions to two members.
                    raise NotReproduced(f"{name} owns {one}, which its topic no longer has")
                if one.topic in reads and not self._racks.mismatch(name, one):
                    kept[one] = None
                    self._owner[one] = name
                else:
                    revoked = True
            self._given[name] = kept
            self._size[name] = len(kept)
        return revoked

    def _assign(self, free: list[TopicPartition], *, by_rack: bool) -> list[TopicPartition]:
        """Assign each partition to the reader with the fewest; return those without a reader.

        ``by_rack``: only to readers in the rack of a replica, and to those without a rack.
        """
        left = []
        heaps: dict[str | None, list[tuple[int, int, str]]] = {}
        topic = None
        for one in free:
            if one.topic != topic:
                topic = one.topic
                heaps = self._heaps(topic, by_rack=by_rack)
            racks = (None, *self._racks.of(one)) if by_rack else (None,)
            heads = [(heap[0], rack) for rack in racks if (heap := heaps.get(rack))]
            if not heads:
                left.append(one)
                continue
            (size, rank, name), rack = min(heads, key=_head)
            heapreplace(heaps[rack], (size + 1, rank, name))
            self._given[name][one] = None
            self._owner[one] = name
            self._size[name] = size + 1
        return left

    def _heaps(self, topic: str, *, by_rack: bool) -> dict[str | None, list[tuple[int, int, str]]]:
        heaps: dict[str | None, list[tuple[int, int, str]]] = {}
        for name in dict.fromkeys(self._readers[topic]):
            rack = self._racks.rack_of.get(name) if by_rack else None
            heaps.setdefault(rack, []).append((self._size[name], self._rank[name], name))
        for heap in heaps.values():
            heapify(heap)
        return heaps

    def _most_partitions(self, name: str) -> int:
        """Return how many partitions a member can get; Kafka counts a topic that it names twice twice."""
        topics = self._topics_of[name]
        if len(topics) == len(self._counts):
            return self._all
        return sum(self._counts[topic] for topic in topics)

    def _takes_part(self, name: str) -> bool:
        """Return whether partitions can move from or to a member."""
        return self._size[name] < self._most[name] or any(
            len(self._readers[one.topic]) > 1 for one in self._given[name]
        )

    def _even_out(
        self, partitions: list[TopicPartition], previous: Mapping[TopicPartition, str]
    ) -> bool:
        """Move partitions from members with more to members with fewer; return whether any moved."""
        moved = False
        modified = True
        seen: set[tuple[int, int]] = set()
        while modified:
            modified = False
            for one in partitions:
                if self._balance.is_reached():
                    break
                to = self._better_owner(one, previous)
                if to is not None:
                    self._move(self._moves.instead_of(one, self._owner[one], to), to)
                    moved = modified = True
            state = hash(tuple(self._owner.items())), self._moves.fingerprint()
            if modified and state in seen:
                raise AssignorFails("the assignor moves partitions in a circle for ever")
            seen.add(state)
        return moved

    def _better_owner(
        self, one: TopicPartition, previous: Mapping[TopicPartition, str]
    ) -> str | None:
        """Return the previous owner if it has at least two fewer, else the reader with the fewest."""
        owner = self._owner[one]
        before = previous.get(one)
        if before is not None:
            if before not in self._balance.taking_part:
                raise AssignorFails(f"the former owner {before} of {one} can get no partition")
            if self._size[owner] > self._size[before] + 1:
                return before
        least = self._balance.least(one.topic)
        if self._size[owner] > self._size[least] + 1:
            return least
        return None

    def _move(self, one: TopicPartition, to: str) -> None:
        source = self._owner[one]
        self._moves.add(one, source, to)
        del self._given[source][one]
        self._given[to][one] = None
        self._owner[one] = to
        self._size[source] -= 1
        self._size[to] += 1
        self._balance.moved(one.topic, source, to)


class _Balance:
    """Whether a partition could still move to a member that then has no more than the one before."""

    def __init__(
        self,
        readers: Mapping[str, list[str]],
        topics_of: Mapping[str, list[str]],
        most: Mapping[str, int],
        size: Mapping[str, int],
    ) -> None:
        self._readers, self._topics_of = readers, topics_of
        self._most_of, self._size = most, size
        self.taking_part: AbstractSet[str] = frozenset()
        self._owners: dict[str, Counter[str]] = {}
        self._reached: bool | None = None
        self._rank: dict[str, int] = {}
        self._least: dict[str, str] = {}

    def begin(self, taking_part: AbstractSet[str], owner: Mapping[TopicPartition, str]) -> None:
        """Begin with the members that partitions can move from or to."""
        self.taking_part = taking_part
        self._rank = {name: at for at, name in enumerate(sorted(taking_part, key=utf16))}
        for one, name in owner.items():
            self._owners.setdefault(one.topic, Counter())[name] += 1

    def moved(self, topic: str, source: str, to: str) -> None:
        """Count a move."""
        self._owners[topic][source] -= 1
        self._owners[topic][to] += 1
        self._reached = None
        self._least.clear()

    def least(self, topic: str) -> str:
        """Return the reader of a topic with the fewest partitions, the first by id."""
        found = self._least.get(topic)
        if found is None:
            readers = (name for name in self._readers[topic] if name in self.taking_part)
            found = min(readers, key=lambda name: (self._size[name], self._rank[name]))
            self._least[topic] = found
        return found

    def is_reached(self) -> bool:
        """Return whether no partition can move any more."""
        if self._reached is None:
            self._reached = self._is_reached()
        return self._reached

    def _is_reached(self) -> bool:
        sizes = sorted((self._size[name], name) for name in self.taking_part)
        if sizes[0][0] >= sizes[-1][0] - 1:
            return True
        most: dict[str, int] = {}
        for size, name in sizes:
            if size == self._most_of[name]:
                continue  # maybe with partitions of a topic that it no longer reads
            for topic in self._topics_of[name]:
                if topic not in most:
                    owners = self._owners.get(topic, Counter())
                    most[topic] = max(
                        (self._size[one] for one, n in owners.items() if n), default=0
                    )
                if size + 1 < most[topic]:
                    return False
        return True


class _Moves:
    """The moves of a decision, so that no two partitions of a topic change places for nothing.

    Source: AbstractStickyAssignor.PartitionMovements.
    """

    def __init__(self) -> None:
        self._of: dict[TopicPartition, tuple[str, str]] = {}
        self._between: dict[str, dict[tuple[str, str], JavaHashMap[TopicPartition]]] = {}

    def add(self, one: TopicPartition, source: str, to: str) -> None:
        """Record a move; one back to where the partition came from cancels the first."""
        pairs = self._between.setdefault(one.topic, {})
        earlier = self._of.pop(one, None)
        if earlier is not None:
            pairs[earlier].remove(one)
            if not len(pairs[earlier]):
                del pairs[earlier]
            if earlier[0] == to:
                return
            source = earlier[0]
        pair = self._of[one] = (source, to)
        if pair not in pairs:
            pairs[pair] = JavaHashMap(_partition_hash_code)
        pairs[pair].add(one)

    def fingerprint(self) -> int:
        """Return a hash code of the moves."""
        return hash(frozenset(self._of.items()))

    def instead_of(self, one: TopicPartition, source: str, to: str) -> TopicPartition:
        """Return the partition to move: one that moved the other way before, if there is one."""
        earlier = self._of.get(one)
        if earlier is not None:
            source = earlier[0]
        reverse = self._between.get(one.topic, {}).get((to, source))
        return one if reverse is None else next(iter(reverse))


def _partition_hash_code(one: TopicPartition) -> int:
    """Return TopicPartition.hashCode, before it is cut to 32 bits."""
    return 31 * (31 + one.partition) + hash_code(one.topic)


def _score(sizes: Iterator[int]) -> int:
    """Return the sum of the differences of all pairs of sizes."""
    ordered = sorted(sizes)
    last = len(ordered) - 1
    return sum(size * (2 * place - last) for place, size in enumerate(ordered))


def _head(one: tuple[tuple[int, int, str], str | None]) -> tuple[int, int, str]:
    return one[0]
