"""A Kafka Streams application on the new protocol, from its records (KIP-1071)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from caughtup.models.groups.membership import (
    Member,
    MemberReconciliation,
    Membership,
    longest_timeout,
    positive,
)
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.wire.record_keys import RecordType, StreamsGroupKey, StreamsGroupMemberKey
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
    StreamsGroupTargetAssignmentMetadata,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
    StreamsGroupRecord,
)
from caughtup.models.wire.streams_group_topology import StreamsGroupTopology

#: The numbers that a task's name may have.
_NUMBER = re.compile(r"[0-9]{1,9}")

StreamsGroupRecordKey = StreamsGroupKey | StreamsGroupMemberKey


class StreamsTask(NamedTuple):
    """A member's copy of a task: ``active``, ``standby`` or ``warmup``."""

    task: TaskId
    role: str
    member: Member


@dataclass(slots=True)
class StreamsGroup:
    """The last value of each of the group's records; ``epoch`` as in ConsumerGroup.

    ``configs`` are those of the coordinator's last assignment. ``target`` and ``target_of`` as in
    ConsumerGroup.
    """

    epoch: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    topology: StreamsGroupTopology | None = None
    members: dict[str, StreamsGroupMemberMetadata] = field(default_factory=dict)
    current: dict[str, StreamsGroupCurrentMemberAssignment] = field(default_factory=dict)
    target: dict[str, StreamsGroupTargetAssignmentMember] = field(default_factory=dict)
    target_of: StreamsGroupTargetAssignmentMetadata | None = None

    def apply(self, key: StreamsGroupRecordKey, record: StreamsGroupRecord | None) -> None:
        """Apply a record, or None for its tombstone."""
        if isinstance(key, StreamsGroupMemberKey):
            self._apply_member(key, record)
        elif key.record_type is RecordType.STREAMS_GROUP_METADATA:
            found = record if isinstance(record, StreamsGroupMetadata) else None
            self.epoch = None if found is None else found.epoch
            self.configs = {} if found is None else found.last_assignment_configs
        elif key.record_type is RecordType.STREAMS_GROUP_TOPOLOGY:
            self.topology = record if isinstance(record, StreamsGroupTopology) else None
        elif key.record_type is RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA:
            self.target_of = None
            if isinstance(record, StreamsGroupTargetAssignmentMetadata):
                self.target_of = record

    def _apply_member(self, key: StreamsGroupMemberKey, record: StreamsGroupRecord | None) -> None:
        if isinstance(record, StreamsGroupMemberMetadata):
            self.members[key.member_id] = record
        elif isinstance(record, StreamsGroupCurrentMemberAssignment):
            self.current[key.member_id] = record
        elif isinstance(record, StreamsGroupTargetAssignmentMember):
            self.target[key.member_id] = record
        elif key.record_type is RecordType.STREAMS_GROUP_MEMBER_METADATA:
            self.members.pop(key.member_id, None)
        elif key.record_type is RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT:
            self.current.pop(key.member_id, None)
        elif key.record_type is RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER:
            self.target.pop(key.member_id, None)

    def is_empty(self) -> bool:
        """Return whether no record of the group is left."""
        left = self.members or self.current or self.target or self.topology
        return self.epoch is None and self.target_of is None and not left

    def source_topics(self) -> dict[str, frozenset[str]]:
        """Return each subtopology's source topics, as far as they are listed by name."""
        return {
            subtopology.subtopology_id: frozenset(
                (
                    *subtopology.source_topics,
                    *(topic.name for topic in subtopology.repartition_source_topics),
                )
            )
            for subtopology in (self.topology.subtopologies if self.topology else ())
        }

    def changelogs(self) -> dict[int, tuple[str, ...]]:
        """Return each subtopology's changelog topics, which the application itself registered."""
        return {
            int(subtopology.subtopology_id): tuple(
                topic.name for topic in subtopology.state_changelog_topics
            )
            for subtopology in (self.topology.subtopologies if self.topology else ())
            if _is_number(subtopology.subtopology_id)
        }

    def copies(self) -> Iterator[StreamsTask]:
        """Yield every copy of every task, in the order of members and tasks.

        A task that a member has yet to revoke is its own until then.
        """
        for member in self._members():
            held = self.current.get(member.member_id)
            if held is None:
                continue
            for role, tasks in (
                ("active", held.active_tasks + held.active_tasks_pending_revocation),
                ("standby", held.standby_tasks + held.standby_tasks_pending_revocation),
                ("warmup", held.warmup_tasks + held.warmup_tasks_pending_revocation),
            ):
                for task in sorted(tasks_of(tasks)):
                    yield StreamsTask(task, role, member)

    def revoking(self) -> set[str]:
        """Return the ids of the members that still have to revoke copies of tasks."""
        return {
            member
            for member, has in self.current.items()
            if any(
                held.partitions
                for pending in (
                    has.active_tasks_pending_revocation,
                    has.standby_tasks_pending_revocation,
                    has.warmup_tasks_pending_revocation,
                )
                for held in pending
            )
        }

    def reconciliation(
        self, member_id: str, partition_counts: Mapping[str, int]
    ) -> MemberReconciliation | None:
        """Return how far a member's active tasks are from its target, by the partitions they read.

        None before both are known. ``partition_counts`` as in ``membership``.
        """
        current, target = self.current.get(member_id), self.target.get(member_id)
        if current is None or target is None:
            return None
        has = set(self._read_by(current.active_tasks, partition_counts))
        wanted = self._read_by(target.active_tasks, partition_counts)
        return MemberReconciliation(
            current.member_epoch,
            tuple(self._read_by(current.active_tasks_pending_revocation, partition_counts)),
            tuple(one for one in wanted if one not in has),
        )

    def _read_by(
        self, held: tuple[TaskIds, ...], partition_counts: Mapping[str, int]
    ) -> list[TopicPartition]:
        """Return the partitions that tasks read, sorted."""
        sources = self.source_topics()
        return sorted(_read_by(tasks_of(held), sources, partition_counts))

    def membership(self, partition_counts: Mapping[str, int]) -> Membership:
        """Return the group's members and the owners of partitions.

        ``partition_counts``: topic → number of partitions.
        """
        active = ((copy.task, copy.member) for copy in self.copies() if copy.role == "active")
        return self._membership(self.epoch or 0, active, partition_counts)

    def decided(self, partition_counts: Mapping[str, int]) -> Membership:
        """Return the group's members and the owners of partitions by its last target assignment.

        Otherwise as ``ConsumerGroup.decided``.
        """
        active = (
            (task, member)
            for member in self._members()
            if (target := self.target.get(member.member_id)) is not None
            for task in sorted(tasks_of(target.active_tasks))
        )
        epoch, at_ms = 0 if self.members else self.epoch or 0, None
        if self.members and self.target_of is not None:
            epoch = self.target_of.assignment_epoch
            at_ms = positive(self.target_of.assignment_timestamp_ms)
        return replace(self._membership(epoch, active, partition_counts), as_of_ms=at_ms)

    def _membership(
        self,
        epoch: int,
        active: Iterable[tuple[TaskId, Member]],
        partition_counts: Mapping[str, int],
    ) -> Membership:
        sources = self.source_topics()
        owners = {
            partition: member
            for task, member in active
            for partition in _read_by((task,), sources, partition_counts)
        }
        topics = frozenset(topic for names in sources.values() for topic in names)
        changelogs = frozenset(t for names in self.changelogs().values() for t in names)
        return Membership(
            "streams",
            epoch,
            tuple(self._members()),
            owners,
            topics | changelogs,
            longest_timeout(read.rebalance_timeout_ms for read in self.members.values()),
            by_epochs=True,
        )

    def _members(self) -> Iterator[Member]:
        for member_id, read in sorted(self.members.items()):
            yield Member(
                member_id,
                read.client_id,
                read.client_host,
                read.process_id,
                read.instance_id,
                poll_interval_ms=positive(read.rebalance_timeout_ms),
            )


def _read_by(
    tasks: Iterable[TaskId],
    sources: Mapping[str, frozenset[str]],
    partition_counts: Mapping[str, int],
) -> Iterator[TopicPartition]:
    """Yield the partitions that tasks read; ``sources``: each subtopology's topics."""
    for task in tasks:
        for topic in sources.get(str(task.subtopology), ()):
            if task.partition < partition_counts.get(topic, 0):
                yield TopicPartition(topic, task.partition)


def tasks_of(held: tuple[TaskIds, ...]) -> Iterator[TaskId]:
    """Yield tasks whose subtopologies have numbers."""
    for tasks in held:
        if _is_number(tasks.subtopology_id):
            for partition in tasks.partitions:
                yield TaskId(int(tasks.subtopology_id), partition)


def _is_number(subtopology_id: str) -> bool:
    """Return whether a subtopology's id is a number, as Kafka Streams writes it."""
    return _NUMBER.fullmatch(subtopology_id) is not None
