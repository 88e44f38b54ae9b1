"""librdkafka's cooperative-sticky assignor.

It iterates its hash maps from the newest key to the oldest, so that no result depends on hash codes.
But partitions without an owner come in the order of topics in the broker's metadata response.
"""

from __future__ import annotations

from itertools import chain

from caughtup.models.assignors.consumer.choices import Choices
from caughtup.models.assignors.consumer.group import (
    Assignment,
    AssignorFails,
    ConsumerGroupSpec,
    NotReproduced,
    partitions_of,
    racks_matter,
)
from caughtup.models.assignors.consumer.moves import Balancing, Held, MovedPartitions, most_first
from caughtup.models.ids import TopicPartition

_NO_GENERATION = -1
_FREED = "librdkafka reads memory here that it has freed"


def assign_librdkafka_sticky(group: ConsumerGroupSpec, choices: Choices) -> Assignment:
    """Return each member's partitions; a partition that another member owns is assigned once it is revoked.

    ``group`` has its members in the order of the group's record, their racks as written: "" is no
    rack, but one in which there is no replica. ``choices`` are the orders of topics, if several
    have partitions without an owner.

    Raises AssignorFails where librdkafka aborts, NotReproduced where it reads memory that it has
    freed. Source: rdkafka_sticky_assignor.c and rdkafka_cgrp.c of librdkafka 2.15.0.
    """
    return _held_back(group, _Sticky(group, choices).assigned())


def _held_back(group: ConsumerGroupSpec, given: Assignment) -> Assignment:
    """Return what members get now. Of two that claim a partition, the last one owns it here.

    A partition that is assigned to no member stays with its owner.
    """
    owners = {one: name for name, member in group.members.items() for one in member.owned}
    assigned = {one: name for name, own in given.items() for one in own}
    now: Assignment = {name: [] for name in group.members}
    for one, name in assigned.items():
        if owners.get(one, name) == name:
            now[name].append(one)
    for one, name in owners.items():
        if one not in assigned:
            now[name].append(one)
    return now


class _Sticky:
    """One decision."""

    def __init__(self, group: ConsumerGroupSpec, choices: Choices) -> None:
        self._group, self._choices = group, choices
        self._to = Balancing(group, _Moves())
        racks = {
            name: member.rack for name, member in group.members.items() if member.rack is not None
        }
        self._by_rack = racks_matter(
            {rack for rack in racks.values() if rack},
            (
                group.replica_racks(one)
                for topic in self._to.readers
                for one in partitions_of(topic, self._to.counts[topic])
            ),
        )
        self._racks = racks if self._by_rack else {}

    def assigned(self) -> Assignment:
        """Return each member's partitions, before any is held back."""
        to = self._to
        self._claim()
        every = self._ordered()
        owned = self._keep()
        free = [one for one in every if one not in owned]
        to.order()
        first = not owned
        left = to.give(free, self._in_rack) if self._by_rack else free
        to.give(left)
        to.balance(every, free, first=first)
        return {name: list(to.given[name]) for name in self._group.members}

    def _claim(self) -> None:
        """Give partitions to the members that claim them in the latest generation.

        A partition that two members claim in the same generation has no owner. For moves, the last
        member that claims a partition in any generation is its owner.
        """
        to = self._to
        claims: dict[TopicPartition, list[tuple[int, str]]] = {}
        for name, member in self._group.members.items():
            generation = _NO_GENERATION if member.generation is None else member.generation
            for one in member.owned:
                claims.setdefault(one, []).append((generation, name))
                to.owner[one] = name
        for one, own in reversed(claims.items()):
            if len({generation for generation, _ in own}) < len(own):
                del to.owner[one]
                continue
            own.sort()
            to.given[own[-1][1]][one] = None
            if len(own) > 1:
                to.before[one] = own[-2][1]

    def _ordered(self) -> list[TopicPartition]:
        """Return all partitions in the order in which they are given and moved."""
        to = self._to
        every = [one for topic in to.readers for one in partitions_of(topic, to.counts[topic])]
        if not to.read_alike():
            return sorted(every, key=lambda one: (to.readers[one.topic], one))
        there = {
            name: sorted(one for one in own if to.exists(one)) for name, own in to.given.items()
        }
        ordered = most_first(there, self._next)
        if not ordered:
            return sorted(every)
        seen = set(ordered)
        unowned: dict[str, list[TopicPartition]] = {}
        for one in every:
            if one not in seen:
                unowned.setdefault(one.topic, []).append(one)
        topics = self._in_metadata_order(list(unowned))
        return [*ordered, *chain.from_iterable(reversed(unowned[one]) for one in reversed(topics))]

    def _next(self, left: list[TopicPartition]) -> TopicPartition:
        """Take the first partition that another member had before, else the first one."""
        before = self._to.before
        return left.pop(next((at for at, one in enumerate(left) if one in before), 0))

    def _in_metadata_order(self, topics: list[str]) -> list[str]:
        """Return topics in the order of the broker's metadata response.

        A broker answers for few topics as it was asked: in the order of the members' subscriptions.
        """
        asked = dict.fromkeys(
            topic for member in self._group.members.values() for topic in member.topics
        )
        left = [topic for topic in asked if topic in topics]
        ordered: list[str] = []
        while left:
            topic = self._choices.of(left, likely=True)
            left.remove(topic)
            ordered.append(topic)
        return ordered

    def _keep(self) -> set[TopicPartition]:
        """Let members keep what they own and read, in their rack; return all of that."""
        to = self._to
        kept: set[TopicPartition] = set()
        for name, own in to.given.items():
            for one in list(own):
                if not to.exists(one):
                    del own[one], to.owner[one]
                elif one.topic not in to.topics_of[name] or not self._in_rack(name, one):
                    del own[one]
                    to.revokes = True
            kept |= own.keys()
        return kept

    def _in_rack(self, name: str, one: TopicPartition) -> bool:
        rack = self._racks.get(name)
        return rack is None or rack in self._group.replica_racks(one)


class _Moves(MovedPartitions):
    """librdkafka doesn't forget a partition's move when it moves back, and frees what it still reads."""

    def __init__(self) -> None:
        self._of: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], Held]] = {}
        #: Pairs of members that are found by a key that is freed.
        self._freed: set[tuple[str, tuple[str, str]]] = set()

    def instead(self, one: TopicPartition, old: str, new: str) -> TopicPartition:
        if one.topic not in self._by_topic:
            return one
        if one in self._of:
            self._of_owner(one, old)
        if self._pair(one.topic, (new, old)):
            raise NotReproduced(_FREED)  # it moves the one that came from there, and frees its name
        return one

    def moved(self, one: TopicPartition, old: str, new: str) -> None:
        if one not in self._of:
            self._add(one, (old, new))
            return
        pair = self._of_owner(one, old)
        together = self._pair(one.topic, pair)
        if one not in together:
            raise AssignorFails(f"{one} moves again after it has moved back")
        key = next(iter(together))
        del together[one]
        if not together:
            del self._by_topic[one.topic][pair]
            self._freed.discard((one.topic, pair))
            if not self._by_topic[one.topic]:
                del self._by_topic[one.topic]
        if pair[0] != new:
            if together and key == one:
                self._freed.add((one.topic, pair))
            self._add(one, (pair[0], new))

    def _of_owner(self, one: TopicPartition, owner: str) -> tuple[str, str]:
        pair = self._of[one]
        if pair[1] != owner:
            raise AssignorFails(f"{one} moves again after it has moved back")
        return pair

    def _pair(self, topic: str, pair: tuple[str, str]) -> Held:
        """Return the partitions that moved so. The first one's move is the key by which they are found."""
        found = self._by_topic.get(topic, {}).get(pair, {})
        if found and (topic, pair) in self._freed:
            raise NotReproduced(_FREED)
        return found

    def _add(self, one: TopicPartition, pair: tuple[str, str]) -> None:
        self._pair(one.topic, pair)
        self._of[one] = pair
        self._by_topic.setdefault(one.topic, {}).setdefault(pair, {})[one] = None
