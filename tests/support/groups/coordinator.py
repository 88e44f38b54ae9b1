"""A group coordinator of KIP-848 groups, played: it writes the records that Kafka's writes.

Its members are in a table as Kafka's, which grows, and keeps the order of joining within its
buckets.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from caughtup.models.assignors.consumer.group import ConsumerGroupSpec, ConsumerMember
from caughtup.models.assignors.consumer.ranges import assign_coordinator_range
from caughtup.models.assignors.consumer.uniform import assign_uniform, in_hash_set_order_of
from caughtup.models.assignors.java.hash_map import copied_table
from caughtup.models.assignors.java.strings import (
    hash_code,
    in_hash_map_order,
    in_hash_set_order,
)
from caughtup.models.assignors.java.uuids import uuid_order, uuids_in_hash_order
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import Record, decode_records
from caughtup.models.polls.generations import split_generations
from caughtup.models.polls.records import ListedRecords
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    TopicPartitions,
)
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    NewGroupKey,
    RecordType,
)
from tests.support.groups.new_group_encoders import new_group_key, new_group_record

AT_MS = 1_700_000_000_000
Target = dict[bytes, tuple[int, ...]]


class MemberTable:
    """A TimelineHashMap: its keys in the order in which Kafka iterates over them."""

    def __init__(self) -> None:
        self._buckets: list[list[str]] = [[], []]

    def __iter__(self) -> Iterator[str]:
        return iter([name for bucket in self._buckets for name in reversed(bucket)])

    def add(self, name: str) -> None:
        size = sum(map(len, self._buckets))
        if name in self._buckets[self._place(name)]:
            return
        if (size + 1) * 3 > len(self._buckets) * 4:
            before = [one for bucket in self._buckets for one in bucket]
            self._buckets = [[] for _ in range(2 * len(self._buckets))]
            for one in before:
                self._buckets[self._place(one)].append(one)
        self._buckets[self._place(name)].append(name)

    def remove(self, name: str) -> None:
        self._buckets[self._place(name)].remove(name)

    def _place(self, name: str) -> int:
        code = hash_code(name)
        signed = code - (1 << 32) if code >= 1 << 31 else code
        bits = len(self._buckets).bit_length() - 1
        return (signed * -7046029254386353131) % (1 << 64) >> 64 - bits


@dataclass
class PlayedGroup:
    """A group, its topics (name → id and number of partitions), and the records that are not read yet.

    ``assignor`` is what members ask for, ``default`` the broker's, and ``decides`` the one that
    decides whatever they ask for.
    """

    group: str
    assignor: str | None = None
    default: str = "uniform"
    decides: str | None = None
    topics: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    members: dict[str, ConsumerGroupMemberMetadata] = field(default_factory=dict)
    expressions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    target: dict[str, Target] = field(default_factory=dict)
    epoch: int = 0
    records: list[Record] = field(default_factory=list)
    table: MemberTable = field(default_factory=MemberTable)

    def take(self) -> list[Record]:
        """Return the records since the last call."""
        taken, self.records = self.records, []
        return taken

    def join(
        self,
        name: str,
        topics: Iterable[str] = (),
        regex: str | None = None,
        instance: str | None = None,
        rack: str | None = None,
    ) -> None:
        """Let a member join or resubscribe, and assign."""
        self.members[name] = ConsumerGroupMemberMetadata(
            instance, rack, "client", "/h", tuple(topics), regex, 300_000, self.assignor, None
        )
        self._write(
            self._member(name, RecordType.CONSUMER_GROUP_MEMBER_METADATA), self.members[name]
        )
        self.assign(name)

    def leave(self, name: str) -> None:
        """Remove a member; the next heartbeat of another one assigns."""
        self._remove(name)
        self._bump()

    def replace(self, before: str, name: str) -> None:
        """Let another member take a static member's place, without a new epoch."""
        self.members[name], self.target[name] = self.members[before], self.target[before]
        self._remove(before)
        self.table.add(name)
        self._write(
            self._member(name, RecordType.CONSUMER_GROUP_MEMBER_METADATA), self.members[name]
        )
        self._write_target(name)
        self._write_current(name)

    def resolve(self, regex: str, topics: Iterable[str], by: str) -> None:
        """Resolve a regular expression otherwise, and assign with a member's heartbeat."""
        self.expressions[regex] = tuple(topics)
        key = ConsumerGroupRegularExpressionKey(
            RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, self.group, regex
        )
        self._write(key, ConsumerGroupRegularExpression(self.expressions[regex], 1, AT_MS))
        self.assign(by)

    def assign(self, by: str) -> None:
        """Begin an epoch with a member's heartbeat, and write its target assignment."""
        self._bump()
        for name, target in self._decided(by).items():
            if self.target.get(name) != target:
                self.target[name] = target
                self._write_target(name)
        self._write(
            ConsumerGroupKey(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, self.group),
            ConsumerGroupTargetAssignmentMetadata(self.epoch, AT_MS + self.epoch),
        )
        self.table.add(by)
        self._write_current(by)

    def _decided(self, by: str) -> dict[str, Target]:
        order = list(self.table)
        order = in_hash_map_order([*order, *([by] if by not in order else [])])
        read = {
            name: (
                *one.subscribed_topic_names,
                *self.expressions.get(one.subscribed_topic_regex or "", ()),
            )
            for name, one in self.members.items()
        }
        alike = self._homogeneous()
        there = [
            self.topics[one][0] for one in in_hash_set_order(read[order[0]]) if one in self.topics
        ]
        ids = uuids_in_hash_order(there, copied_table(len(set(read[order[0]]))))
        if not alike:
            ids = sorted((topic_id for topic_id, _ in self.topics.values()), key=uuid_order)
        names = {topic_id: name for name, (topic_id, _) in self.topics.items()}
        members = {
            name: ConsumerMember(
                read[name],
                self.members[name].instance_id,
                owned=[
                    TopicPartition(names[topic_id], number)
                    for topic_id in uuids_in_hash_order(self.target.get(name, {}))
                    if topic_id in names
                    for number in in_hash_set_order_of(self.target[name][topic_id])
                ],
            )
            for name in order
        }
        group = ConsumerGroupSpec(members, {names[one]: self.topics[names[one]][1] for one in ids})
        if (self.decides or self.assignor or self.default) == "uniform":
            decided = assign_uniform(group, homogeneous=alike)
        else:
            decided = assign_coordinator_range(group)
        found: dict[str, Target] = {}
        for name, own in decided.items():
            numbers: dict[bytes, list[int]] = {}
            for one in sorted(own):
                numbers.setdefault(self.topics[one.topic][0], []).append(one.partition)
            target = {topic_id: frozenset(these) for topic_id, these in numbers.items()}
            before = {
                topic_id: frozenset(these) for topic_id, these in self.target.get(name, {}).items()
            }
            found[name] = (
                self.target[name]
                if name in self.target and before == target
                else {topic_id: tuple(these) for topic_id, these in numbers.items()}
            )
        return found

    def _homogeneous(self) -> bool:
        patterns = {one.subscribed_topic_regex for one in self.members.values()}
        names = [set(one.subscribed_topic_names) for one in self.members.values()]
        if patterns == {None}:
            return all(own == names[0] for own in names)
        return len(patterns) == 1 and not any(names)

    def _remove(self, name: str) -> None:
        del self.members[name]
        self.table.remove(name)
        self.target.pop(name, None)
        for record_type in (
            RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
            RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        ):
            self._write(self._member(name, record_type), None)

    def _bump(self) -> None:
        self.epoch += 1
        key = ConsumerGroupKey(RecordType.CONSUMER_GROUP_METADATA, self.group)
        self._write(key, ConsumerGroupMetadata(self.epoch, 0))

    def _write_target(self, name: str) -> None:
        held = tuple(TopicPartitions(one, these) for one, these in self.target[name].items())
        self._write(
            self._member(name, RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER),
            ConsumerGroupTargetAssignmentMember(held),
        )

    def _write_current(self, name: str) -> None:
        self._write(
            self._member(name, RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT),
            ConsumerGroupCurrentMemberAssignment(self.epoch, self.epoch - 1, 0, (), ()),
        )

    def _member(self, name: str, record_type: RecordType) -> ConsumerGroupMemberKey:
        return ConsumerGroupMemberKey(record_type, self.group, name)

    def _write(self, key: NewGroupKey, value: ConsumerGroupRecord | None) -> None:
        self.records.append(
            (new_group_key(key), None if value is None else new_group_record(value))
        )


def topic_id(rng: random.Random) -> bytes:
    """Make the id of a topic."""
    return rng.randbytes(16)


def know(state: ClusterState, group: PlayedGroup) -> None:
    """Let the state know the group's topics."""
    for name, (known, count) in group.topics.items():
        for number in range(count, state.ends.partition_count(name)):
            state.apply_ends(TopicPartition(name, number), None)  # it was made again
        for number in range(count):
            sample = EndOffsets(0, 1, 1, AT_MS)
            state.apply_ends(TopicPartition(name, number), sample, known, AT_MS)


def read(state: ClusterState, records: list[Record], most: int = 1 << 31) -> None:
    """Read a poll of records, in parts of at most ``most``."""
    keys, values = [key for key, _ in records], [value for _, value in records]
    for part in split_generations(ListedRecords(keys, values), most):
        state.apply_batch(decode_records(part), AT_MS)
        for large in state.group_decisions.take_large():
            state.group_decisions.apply_large(large, large.decide(), AT_MS)
