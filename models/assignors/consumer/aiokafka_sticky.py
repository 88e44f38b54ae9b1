"""aiokafka's sticky assignor.

Members and partitions are in the order of the group's record but for two sets of Python's, whose
order differs from process to process: partitions that another member had in an earlier generation,
and partitions that moved between the same two members.
"""

from __future__ import annotations

from caughtup.models.assignors.consumer.choices import Choices
from caughtup.models.assignors.consumer.group import (
    Assignment,
    AssignorFails,
    ConsumerGroupSpec,
    partitions_of,
)
from caughtup.models.assignors.consumer.moves import Balancing, Held, MovedPartitions, most_first
from caughtup.models.ids import TopicPartition

_NO_GENERATION = -1


def assign_aiokafka_sticky(group: ConsumerGroupSpec, choices: Choices) -> Assignment:
    """Return each member's partitions.

    ``group`` has its members in the order of the group's record. ``choices`` are the orders of sets,
    and whether the leader knows topics that no member reads, as it does if it subscribed by a pattern.

    Raises AssignorFails where aiokafka raises an exception.
    Source: coordinator/assignors/sticky of aiokafka 0.14.0.
    """
    to = _Balancing(group, _Moves(choices))
    there = to.claim()
    every = to.ordered(fresh=not there, choices=choices)
    kept = to.keep()
    free = [one for one in every if one not in kept]
    to.order()
    to.give(free)
    to.balance(every, free, first=not kept)
    return {name: list(to.given[name]) for name in group.members}


class _Balancing(Balancing):
    """What differs: a member that takes no part in moves counts as one without partitions."""

    def claim(self) -> bool:
        """Give partitions to the members that claim them in the latest generation; return if any do.

        Of two that claim one in the same generation, the first has it.
        """
        claims: dict[TopicPartition, dict[int, str]] = {}
        for name, member in self.group.members.items():
            generation = _NO_GENERATION if member.generation is None else member.generation
            for one in member.owned:
                of_each = claims.setdefault(one, {})
                if not (generation and generation in of_each):
                    of_each[generation] = name
        for one, of_each in claims.items():
            latest = sorted(of_each, reverse=True)
            self.owner[one] = of_each[latest[0]]
            self.given[self.owner[one]][one] = None
            if len(latest) > 1:
                self.before[one] = of_each[latest[1]]
        return bool(claims)

    def ordered(self, *, fresh: bool, choices: Choices) -> list[TopicPartition]:
        """Return all partitions in the order in which they are given and moved."""
        every = [one for topic in self.readers for one in partitions_of(topic, self.counts[topic])]
        every.sort(key=lambda one: (self.readers[one.topic], one))
        if fresh or not self._subscribed_alike() or choices.of((False, True), likely=True):
            return every

        def take(left: list[TopicPartition]) -> TopicPartition:
            others = sorted(one for one in left if one in self.before)
            if not others:
                return left.pop()
            left.remove(chosen := choices.of(others))
            return chosen

        there = {name: [one for one in own if self.exists(one)] for name, own in self.given.items()}
        ordered = most_first(there, take)
        seen = set(ordered)
        return [*ordered, *(one for one in every if one not in seen)]

    def _subscribed_alike(self) -> bool:
        """Return whether all members name the same topics, in the same order."""
        named = [
            [topic for topic in member.topics if topic in self.counts]
            for member in self.group.members.values()
        ]
        return all(one == named[0] for one in named)

    def keep(self) -> set[TopicPartition]:
        """Let members keep what they own and read; return all of that."""
        kept: set[TopicPartition] = set()
        for name, own in self.given.items():
            for one in list(own):
                if not self.exists(one):
                    del own[one], self.owner[one]
                elif one.topic not in self.topics_of[name]:
                    del own[one], self.owner[one]
                    self.revokes = True
            kept |= own.keys()
        return kept

    def held(self, name: str) -> Held:
        return self.given.setdefault(name, {})


class _Moves(MovedPartitions):
    """Of several partitions that came from the new owner, one goes back: the first of a set."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._of: dict[TopicPartition, tuple[str, str]] = {}
        self._by_topic: dict[str, dict[tuple[str, str], set[TopicPartition]]] = {}

    def instead(self, one: TopicPartition, old: str, new: str) -> TopicPartition:
        if one.topic not in self._by_topic:
            return one
        if one in self._of:
            old = self._from(one, old)
        came = self._by_topic[one.topic].get((new, old))
        return self._choices.of(sorted(came)) if came else one

    def moved(self, one: TopicPartition, old: str, new: str) -> None:
        first = old
        if one in self._of:
            first = self._from(one, old)
            self._remove(one)
        if first != new:
            self._of[one] = first, new
            self._by_topic.setdefault(one.topic, {}).setdefault((first, new), set()).add(one)

    def _from(self, one: TopicPartition, owner: str) -> str:
        first, last = self._of[one]
        if last != owner:
            raise AssignorFails(f"{one} moves again from where it hasn't moved to")
        return first

    def _remove(self, one: TopicPartition) -> None:
        of_topic, pair = self._by_topic[one.topic], self._of.pop(one)
        of_topic[pair].remove(one)
        if not of_topic[pair]:
            del of_topic[pair]
        if not of_topic:
            del self._by_topic[one.topic]
