"""The racks of a group's members and of its partitions' replicas, for the sticky assignors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from itertools import chain, repeat

from caughtup.models.assignors.consumer.group import ConsumerGroupSpec, partitions_of, racks_matter
from caughtup.models.ids import TopicPartition

_NO_RACKS: AbstractSet[str] = frozenset()


class MemberRacks:
    """``rack_of`` has the members' racks if partitions are assigned by rack; else it is empty.

    Source: AbstractStickyAssignor.RackInfo.
    """

    def __init__(self, group: ConsumerGroupSpec) -> None:
        """Find the racks, and whether partitions are assigned by them."""
        racks = {name: member.rack for name, member in group.members.items() if member.rack}
        members = Counter(racks.values())
        self._replicas: dict[TopicPartition, AbstractSet[str]] = {}
        if racks:
            for topic, count in group.topics.items():
                known = group.racks.get(topic, ())
                self._replicas.update(
                    zip(partitions_of(topic, count), chain(known, repeat(_NO_RACKS)), strict=False)
                )
        different = {frozenset(replicas) for replicas in self._replicas.values()}
        counts = {racks: sum(members[rack] for rack in racks) for racks in different}
        self._members = {one: counts[frozenset(racks)] for one, racks in self._replicas.items()}
        self.rack_of: dict[str, str] = {}
        if racks_matter(set(racks.values()), self._replicas.values()):
            self.rack_of = racks

    def of(self, partition: TopicPartition) -> AbstractSet[str]:
        """Return the racks of a partition's replicas."""
        return self._replicas.get(partition, _NO_RACKS)

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """Return whether the member has a rack in which the partition has no replica."""
        rack = self.rack_of.get(member)
        return rack is not None and rack not in self.of(partition)

    def fewest_members_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return partitions by the number of members in their replicas' racks, else as given.

        Kafka orders them so as soon as one member has a rack, whether or not it assigns by rack.
        """
        if not self._members:
            return partitions
        return sorted(partitions, key=lambda one: self._members.get(one, 0))
