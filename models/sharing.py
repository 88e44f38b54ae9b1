"""How instances of the service share the partitions of ``__consumer_offsets``, and so the groups.

All records of a group are in one partition: the instance that has the partition knows the group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from caughtup.models.assignors.consumer.group import ConsumerGroupSpec, ConsumerMember
from caughtup.models.assignors.consumer.sticky import assign_sticky
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

#: The most instances that have partitions; more stand by. Each writes under a transactional id of
#: its own, and the group's leader has to fence all of these ids.
MOST_INSTANCES = 16
#: The most characters of an instance's name that are shown.
_LABEL = 100


@dataclass(frozen=True, slots=True)
class Claim:
    """What an instance sends when it joins.

    ``partitions``: those that it has, and gives up only when it is told to. ``slot``: the number of
    its transactional id, None before it has one. ``since_ms``: when it started, by its own clock.
    """

    partitions: frozenset[int]
    slot: int | None
    since_ms: int


@dataclass(frozen=True, slots=True)
class PartitionShare:
    """What an instance is given: partitions, and the number of its transactional id.

    Without a slot (None) it has no partitions.
    """

    slot: int | None
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sharing:
    """The shares by member id. ``orphaned``: partitions that are given, and that no member claimed."""

    shares: Mapping[str, PartitionShare]
    orphaned: frozenset[int]

    def unfenced(self, claims: Mapping[str, Claim]) -> Sharing:
        """Return what is shared while instances that are gone may still write under their slots.

        Members keep what they claim. Orphaned partitions are given to none, and no slot is.
        """
        kept = {}
        for member, share in self.shares.items():
            partitions = tuple(n for n in share.partitions if n not in self.orphaned)
            has_slot = share.slot == claims[member].slot
            kept[member] = PartitionShare(*((share.slot, partitions) if has_slot else (None, ())))
        return Sharing(kept, frozenset())


def share_partitions(claims: Mapping[str, Claim], count: int) -> Sharing:
    """Share the partitions 0 to ``count`` - 1 among members, evenly and with few moves.

    A partition that a member claims is given to no other member: the one that claims it gives it up
    first, and joins again. One that two members claim is given to neither.
    """
    slots = _slots(claims)
    sharing = [member for member in sorted(claims) if slots[member] is not None]
    wanted = _even(claims, sharing, count)
    claimed = Counter(number for claim in claims.values() for number in claim.partitions)
    shares: dict[str, PartitionShare] = {}
    orphaned: set[int] = set()
    for member in sorted(claims):
        given = []
        for number in wanted.get(member, ()):
            others = claimed[number] - (number in claims[member].partitions)
            if not others:
                given.append(number)
                if not claimed[number]:
                    orphaned.add(number)
        shares[member] = PartitionShare(slots[member], tuple(given))
    return Sharing(shares, frozenset(orphaned))


def _slots(claims: Mapping[str, Claim]) -> dict[str, int | None]:
    """Return each member's slot: the one that it has, else the lowest free one, None without one."""
    order = sorted(claims, key=lambda member: (claims[member].since_ms, member))
    taken: dict[int, str] = {}
    for member in order:
        slot = claims[member].slot
        if slot is not None and 0 <= slot < MOST_INSTANCES:
            taken.setdefault(slot, member)
    found = {member: slot for slot, member in taken.items()}
    free = iter(sorted(set(range(MOST_INSTANCES)) - taken.keys()))
    return {member: found[member] if member in found else next(free, None) for member in order}


def unclaimed_slots(claims: Mapping[str, Claim]) -> list[int]:
    """Return the slots that no member has: instances that are gone may still write under them."""
    return sorted(set(range(MOST_INSTANCES)) - {claim.slot for claim in claims.values()})


def _even(
    claims: Mapping[str, Claim], sharing: list[str], count: int
) -> Mapping[str, tuple[int, ...]]:
    """Return each member's partitions once every one has been given up that has to be."""
    if not sharing or not count:
        return {}
    topic = (CONSUMER_OFFSETS,)
    members = {}
    for member in sharing:
        owned = [
            TopicPartition(CONSUMER_OFFSETS, number)
            for number in sorted(claims[member].partitions)
            if 0 <= number < count
        ]
        members[member] = ConsumerMember(topic, owned=owned, generation=0, joined_generation=0)
    assigned = assign_sticky(ConsumerGroupSpec(members, {CONSUMER_OFFSETS: count}))
    return {
        member: tuple(sorted(partition.partition for partition in partitions))
        for member, partitions in assigned.items()
    }


@dataclass(frozen=True, slots=True)
class Peer:
    """Another instance: its name (host:pid), and the URL of its web port."""

    name: str
    address: str

    @property
    def label(self) -> str:
        """Its name as a header and a log can have it: any member of the group chooses its own."""
        return "".join(each if each.isprintable() else "?" for each in self.name[:_LABEL])


class HeldPartitions:
    """The partitions of ``__consumer_offsets`` whose groups this instance has.

    ``count`` is the number of all partitions. By default, it has all (``numbers`` is None).
    ``others`` maps each partition that was given to another instance to that instance. ``name``:
    that of this instance among them.
    """

    def __init__(self) -> None:
        self.name = ""
        self.count = 0
        self.numbers: frozenset[int] | None = None
        self.others: Mapping[int, Peer] = {}

    def peers(self) -> list[Peer]:
        """Return the other instances that have partitions, sorted by name."""
        return sorted(set(self.others.values()), key=lambda peer: (peer.name, peer.address))

    def unheld(self) -> list[int]:
        """Return the partitions that neither this nor another instance has, or not yet."""
        if self.numbers is None:
            return []
        return sorted(set(range(self.count)) - self.numbers - self.others.keys())

    def peer_of(self, group: str) -> Peer | None:
        """Return the other instance that has a group; None if this one has it, or none is known."""
        number = self.partition_of(group)
        return None if number is None or self.has_group(group) else self.others.get(number)

    @property
    def are_shared(self) -> bool:
        """Whether several instances share the partitions."""
        return self.numbers is not None

    def add(self, partitions: frozenset[int]) -> frozenset[int]:
        """Add partitions that this instance was given; return all that it has."""
        self.numbers = (self.numbers or frozenset()) | partitions
        return self.numbers

    def remove(self, partitions: frozenset[int]) -> None:
        """Remove partitions that it gives up."""
        self.numbers = (self.numbers or frozenset()) - partitions

    def partition_of(self, group: str) -> int | None:
        """Return the partition with a group's records; None before their number is known."""
        return coordinator_partition(group, self.count) if self.count > 0 else None

    def has_group(self, group: str) -> bool:
        """Return whether the instance has the partition with a group's records."""
        return self.numbers is None or self.partition_of(group) in self.numbers


class Lister(NamedTuple):
    """An instance that lists topics, and the number of its list.

    The number grows whenever the instance no longer lists a topic of before: then what others left to
    it counts only once they read of it again under the new number. It begins with the time of the
    instance's start (s), so that it also grows with one of the same name.
    """

    name: str
    number: int

    @property
    def text(self) -> str:
        """What a record says."""
        return f"{self.name}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> Lister | None:
        """Return what a record says, None if it isn't one."""
        name, slash, number = text.rpartition("/")
        is_one = slash and number.isascii() and number.isdecimal() and len(number) < _DIGITS
        return cls(name, int(number)) if is_one else None


class TopicListers:
    """Which other instance lists the end offsets of a topic that this one's groups read, too.

    All read what each publishes, in each round a record at least. Of the instances that list a topic,
    the one with the highest weight for it goes on, and the others leave it to that one.
    """

    def __init__(self) -> None:
        #: By instance: the number of its list, and the time of its newest record (ms).
        self._heard: dict[str, tuple[int, int]] = {}
        #: By topic: the newest instance of a higher weight that listed it, and when (ms).
        self._above: dict[str, tuple[Lister, int]] = {}

    def note(self, topic: str, lister: Lister | None, at_ms: int, own: str) -> None:
        """Note that an instance listed a topic at a time (ms); None: none that shares its lists.

        ``own``: the name of this instance.
        """
        if lister is None:
            self._above.pop(topic, None)
            return
        number, heard_ms = self._heard.pop(lister.name, (0, 0))
        self._heard[lister.name] = max(number, lister.number), max(heard_ms, at_ms)
        if len(self._heard) > _MOST_HEARD:
            del self._heard[next(iter(self._heard))]
        if lister.name != own and _weight(topic, lister.name) > _weight(topic, own):
            known = self._above.get(topic)
            if known is None or known[1] <= at_ms or known[0].name == lister.name:
                self._above[topic] = lister, at_ms

    def topics(self) -> list[str]:
        """Return the topics that others list, or listed."""
        return list(self._above)

    def lister(
        self, topic: str, present: Container[str], now_ms: int, silent_ms: int
    ) -> Lister | None:
        """Return the instance to which a topic is left, None if this one has to list it.

        ``present``: the names of the other instances that have groups. One of which nothing was heard
        for ``silent_ms`` lists nothing.
        """
        if (above := self._above.get(topic)) is None:
            return None
        lister, at_ms = above
        newest, heard_ms = self._heard.get(lister.name, (0, 0))
        is_left = (
            lister.name in present
            and lister.number == newest
            and now_ms - at_ms < LISTED_MS
            and now_ms - heard_ms < silent_ms
        )
        return lister if is_left else None

    def heard_ms(self, instance: str) -> int | None:
        """Return as of when the topics are known that an instance lists (ms); None if it lists none."""
        return self._heard[instance][1] if instance in self._heard else None


#: An instance that lists a topic publishes each of its partitions once a minute at least.
LISTED_MS = 75_000
#: The most instances of which it is kept when they were heard, the newest.
_MOST_HEARD = 4 * MOST_INSTANCES
_DIGITS = 16


def _weight(topic: str, instance: str) -> int:
    return crc32(f"{instance} {topic}".encode(errors="surrogatepass"))
