"""The sticky assignors' decision if all members read the same topics.

Members keep what they own up to their share, and partitions that are left go to members below it in
turn: first by rack, if racks matter, then to any.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Set as AbstractSet
from itertools import chain, compress, cycle

from caughtup.models.assignors.consumer.group import (
    Assignment,
    AssignorFails,
    ConsumerGroupSpec,
    partitions_of,
)
from caughtup.models.assignors.consumer.member_racks import MemberRacks
from caughtup.models.assignors.java.strings import in_string_order, utf16
from caughtup.models.ids import TopicPartition


class SameTopics:
    """One decision; ``moving`` are the partitions with other owners before, and their new ones.

    ``least`` and ``most`` are the numbers of partitions of a member; ``above`` is how many members
    get more than the least. Source: AbstractStickyAssignor.ConstrainedAssignmentBuilder.
    """

    def __init__(
        self,
        group: ConsumerGroupSpec,
        racks: MemberRacks,
        owned: Assignment,
        claimed_twice: AbstractSet[TopicPartition],
    ) -> None:
        """``owned``: each member's partitions before, in the order of Kafka's hash table."""
        self._group, self._racks, self._owned = group, racks, owned
        self._claimed_twice = claimed_twice
        self._least, self._above = divmod(sum(group.topics.values()), len(group.members))
        self._most = self._least + (self._above > 0)
        self._given: Assignment = {}
        self._revoked: dict[TopicPartition, str] = {}
        self._below: list[str] = []
        self._exactly: list[str] = []
        self._are_above = 0
        self.moving: dict[TopicPartition, str] = {}

    def assigned(self) -> Assignment:
        """Return each member's partitions. Raises AssignorFails where Kafka's assignor throws."""
        self._keep()
        self._below = in_string_order(self._below)
        self._exactly = in_string_order(self._exactly)
        free = self._racks.fewest_members_first(self._free())
        if self._racks.rack_of:
            free = self._assign_by_rack(free)
        self._assign_in_turn(free)
        if self._below:
            raise AssignorFails("a member gets fewer partitions than its share")
        return self._given

    def _keep(self) -> None:
        """Let members keep what they own, up to their share."""
        given, below, least = self._given, self._below, self._least
        for member, owned in self._owned.items():
            own = owned
            if self._racks.rack_of:
                own = [one for one in owned if not self._racks.mismatch(member, one)]
                if len(own) < len(owned):
                    left = (one for one in owned if self._racks.mismatch(member, one))
                    self._revoked.update(dict.fromkeys(left, member))
            if self._claimed_twice:
                own = [one for one in own if one not in self._claimed_twice]
            if len(own) < least:
                given[member] = list(own)
                below.append(member)
                continue
            keeps = least
            if len(own) >= self._most and self._are_above < self._above:
                keeps = self._most
                self._are_above += 1
                if self._are_above == self._above:
                    self._exactly.clear()
            elif self._are_above < self._above:
                self._exactly.append(member)
            if len(own) > keeps:
                own = sorted(own, key=_by_number)
                self._revoked.update(dict.fromkeys(own[keeps:], member))
            given[member] = own[:keeps]

    def _free(self) -> list[TopicPartition]:
        """Return the partitions that no member keeps, sorted.

        Kafka goes through both sorted lists at once: a kept partition beyond the end of its topic,
        which has been made again with fewer partitions, hides all those kept after it.
        """
        topics = self._group.topics
        every = list(
            chain.from_iterable(partitions_of(one, topics[one]) for one in in_string_order(topics))
        )
        kept = set(chain.from_iterable(self._given.values()))
        if not kept:
            return every
        free = [one for one in every if one not in kept]
        if len(free) + len(kept) == len(every):
            return free
        ordered = sorted(kept, key=lambda one: (utf16(one.topic), one.partition))
        beyond = (at for at, one in enumerate(ordered) if one.partition >= topics[one.topic])
        seen = set(ordered[: next(beyond)])
        return [one for one in every if one not in seen]

    def _assign_by_rack(self, free: list[TopicPartition]) -> list[TopicPartition]:
        """Assign partitions in turn to members in the rack of a replica; return those left."""
        rack_of = self._racks.rack_of
        below = _Circle([rack_of.get(member) for member in self._below])
        names = list(self._below)
        exactly: dict[str | None, deque[int]] = {}
        candidates = list(self._exactly)
        for at, member in enumerate(candidates):
            exactly.setdefault(rack_of.get(member), deque()).append(at)
        left: list[TopicPartition] = []
        for one in free:
            replicas = self._racks.of(one)
            place = below.next(replicas)
            if place is not None:
                member = names[place]
                if len(self._given[member]) + 1 >= self._least:
                    below.remove(place)
                    if len(self._given[member]) + 1 < self._most and self._are_above < self._above:
                        exactly.setdefault(rack_of.get(member), deque()).append(len(candidates))
                        candidates.append(member)
            else:
                first = min(
                    (exactly[rack][0] for rack in replicas if exactly.get(rack)), default=None
                )
                if first is None:
                    left.append(one)
                    continue
                member = candidates[first]
                exactly[rack_of.get(member)].popleft()
                self._are_above += 1
                if self._are_above == self._above:
                    exactly.clear()
            self._give(one, member)
        self._below = [names[place] for place in below.places()]
        still = sorted(place for places in exactly.values() for place in places)
        self._exactly = [candidates[place] for place in still]
        return left

    def _assign_in_turn(self, free: list[TopicPartition]) -> None:
        """Assign partitions in turn to members below the least, then one to each at the least."""
        exactly = deque(self._exactly)
        given, least, start = self._given, self._least, 0
        none_moves = not self._revoked and not self._claimed_twice
        while start < len(free) and self._below:
            count = len(self._below)
            # As many rounds as pass before the first of them has the least.
            rounds = least - max(len(given[name]) for name in self._below)
            here = free[start : start + rounds * count]
            if none_moves:
                for place, member in enumerate(self._below):
                    given[member] += here[place::count]
            else:
                for one, member in zip(here, cycle(self._below), strict=False):
                    self._give(one, member)
            start += len(here)
            sizes = [len(given[name]) for name in self._below]
            exactly += compress(self._below, [size == least for size in sizes])
            self._below = list(compress(self._below, [size < least for size in sizes]))
        for one in free[start:]:
            if not exactly:
                raise AssignorFails("a partition is left, and no member has room")
            self._give(one, exactly.popleft())

    def _give(self, one: TopicPartition, member: str) -> None:
        self._given[member].append(one)
        if (
            self._revoked and self._revoked.get(one, member) != member
        ) or one in self._claimed_twice:
            self.moving[one] = member


class _Circle:
    """Members below the least, by rack, from which the next one after the last is taken in turn."""

    def __init__(self, racks: list[str | None]) -> None:
        """``racks``: that of each member, by its place."""
        self._racks = racks
        self._there: dict[str | None, list[int]] = {}
        for place, rack in enumerate(racks):
            self._there.setdefault(rack, []).append(place)
        self._from = 0

    def next(self, racks: AbstractSet[str]) -> int | None:
        """Return the place of the next member in one of the racks, from the last one on."""
        found: tuple[bool, int] | None = None
        for rack in racks:
            places = self._there.get(rack)
            if not places:
                continue
            at = bisect_left(places, self._from)
            this = (False, places[at]) if at < len(places) else (True, places[0])
            found = this if found is None else min(found, this)
        if found is None:
            return None
        self._from = found[1] + 1
        return found[1]

    def remove(self, place: int) -> None:
        """Take a member out."""
        places = self._there[self._racks[place]]
        del places[bisect_left(places, place)]

    def places(self) -> list[int]:
        """Return the places of the members that are left, ascending."""
        left: list[int] = []
        for places in self._there.values():
            for place in places:
                insort(left, place)
        return left


def _by_number(partition: TopicPartition) -> tuple[int, bytes]:
    return partition.partition, utf16(partition.topic)
