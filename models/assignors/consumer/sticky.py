"""The sticky and the cooperative-sticky assignor: members keep what they own, as far as that is even.

Source: AbstractStickyAssignor, StickyAssignor and CooperativeStickyAssignor of Kafka's clients 4.3.1
and 4.4.0. What an assignor remembers of groups that its process led before is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from caughtup.models.assignors.consumer.group import Assignment, ConsumerGroupSpec
from caughtup.models.assignors.consumer.member_racks import MemberRacks
from caughtup.models.assignors.consumer.mixed_topics import MixedTopics
from caughtup.models.assignors.consumer.same_topics import SameTopics
from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.ids import TopicPartition

_NO_GENERATION = -1


def assign_sticky(group: ConsumerGroupSpec) -> Assignment:
    """Return each member's partitions, unordered. Raises AssignorFails where Kafka's throws."""
    return _assign(group).assignment


def assign_cooperative_sticky(group: ConsumerGroupSpec) -> Assignment:
    """Return each member's partitions without those that another member has to revoke first.

    Raises AssignorFails where Kafka's throws.
    """
    decided = _assign(group)
    moving = decided.moving
    if moving is None:
        moving = _moving(group, decided.assignment)
    for partition, member in moving.items():
        if partition in decided.assignment[member]:
            decided.assignment[member].remove(partition)
    return decided.assignment


@dataclass(frozen=True, slots=True)
class _Decided:
    """``moving``: partitions with other owners before, and their new ones; None if not known yet."""

    assignment: Assignment
    moving: dict[TopicPartition, str] | None


def _assign(every: ConsumerGroupSpec) -> _Decided:
    read = frozenset[str]().union(*{member.topics for member in every.members.values()})
    topics = {topic: count for topic, count in every.topics.items() if count and topic in read}
    group = replace(every, topics=topics)
    owned, claimed_twice = _owned(group)
    racks = MemberRacks(group)
    if _have_same_topics(group):
        same = SameTopics(group, racks, owned, claimed_twice)
        return _Decided(same.assigned(), same.moving)
    return _Decided(MixedTopics(group, racks, owned).assigned(), None)


def _have_same_topics(group: ConsumerGroupSpec) -> bool:
    """Return whether all members read the same topics; first members that read none don't count."""
    topics: set[str] = set()
    named: tuple[str, ...] = ()
    for member in group.members.values():
        if not topics:
            named = member.topics
            topics.update(named)
        elif member.topics == named:
            continue
        elif len(member.topics) != len(topics) or not topics.issuperset(member.topics):
            return False
    return True


def _owned(group: ConsumerGroupSpec) -> tuple[Assignment, set[TopicPartition]]:
    """Return the partitions that each member keeps for now, and those that two claimed at once.

    A partition that several members claim belongs to the one with the latest generation, and to none
    if two claim it in the same. The members are in the order of a HashMap.
    """
    order = in_hash_map_order(group.members)
    claims = [one for member in group.members.values() for one in member.owned]
    if not claims:
        return {name: [] for name in order}, set()
    if len(set(claims)) == len(claims):
        gone = {one.topic for one in claims} - group.topics.keys()
        return {
            name: [one for one in group.members[name].owned if not gone or one.topic not in gone]
            for name in order
        }, set()
    owned: Assignment = {member: [] for member in order}
    owners: dict[TopicPartition, str] = {}
    claimed_twice: set[TopicPartition] = set()
    for member_id, member in group.members.items():
        generation = _NO_GENERATION if member.generation is None else member.generation
        kept = owned[member_id]
        for partition in member.owned:
            if partition.topic not in group.topics:
                continue
            other = owners.get(partition)
            if other is None:
                kept.append(partition)
                owners[partition] = member_id
                continue
            joined = group.members[other].joined_generation
            others = _NO_GENERATION if joined is None else joined
            if generation < others:
                continue
            if generation == others:
                claimed_twice.add(partition)
            else:
                kept.append(partition)
            if partition in owned[other]:
                owned[other].remove(partition)
            owners[partition] = member_id
    return owned, claimed_twice


def _moving(group: ConsumerGroupSpec, assignment: Assignment) -> dict[TopicPartition, str]:
    """Return the partitions that one member gets and that another one owned."""
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, partitions in assignment.items():
        had, has = set(group.members[member].owned), set(partitions)
        added.update((one, member) for one in partitions if one not in had)
        revoked |= had - has
    return {one: member for one, member in added.items() if one in revoked}
