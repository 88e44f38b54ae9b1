"""The cluster as the service knows it: events in, values out. No I/O and no clock inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from caughtup.models.application import Application
from caughtup.models.end_offsets import EndOffsetTable
from caughtup.models.errors import CaughtupError, DecodeError
from caughtup.models.groups import group_type, read_streams_generation
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.lag import EndOffsets, PartitionLag, partition_lag
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.reassignment import ReassignmentTracker
from caughtup.models.task_table import TaskCopy, task_table
from caughtup.models.wire.batch import Batch
from caughtup.models.wire.consumer_offsets import OffsetCommit
from caughtup.models.wire.consumer_protocol import decode_assignment
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata


@dataclass(slots=True)
class ReaderCounts:
    """What the reader of ``__consumer_offsets`` met: records, skips and errors, by key type."""

    records: Counter[int] = field(default_factory=Counter)
    skipped: Counter[int] = field(default_factory=Counter)
    errors: Counter[tuple[int | None, str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A group's partition: its commit, its owner, the end offsets and the lag; None = unknown."""

    partition: TopicPartition
    committed: int | None
    ends: EndOffsets | None
    lag: PartitionLag | None
    member: GroupMember | None


class ClusterState:
    """Everything known of one cluster. ``apply_*`` take events; the rest only reads."""

    def __init__(self, cluster: str, parameters: Mapping[str, ApplicationParameters]) -> None:
        self.cluster = cluster
        self.ends = EndOffsetTable()
        self.reassignments = ReassignmentTracker()
        self.counts = ReaderCounts()
        self.commits: dict[str, dict[TopicPartition, OffsetCommit]] = {}
        self.groups: dict[str, GroupMetadata] = {}
        self.assigned: dict[str, dict[TopicPartition, GroupMember]] = {}
        self.applications: dict[str, Application] = {}
        self._parameters = parameters
        self._published: dict[str, Mapping[str, Any]] = {}
        self._readers: dict[str, set[str]] = {}

    def parameters(self, group: str) -> ApplicationParameters:
        """Give what the settings say of an application, or nothing but Kafka's defaults."""
        return self._parameters.get(group) or ApplicationParameters()

    def apply_published(self, group: str, record: Mapping[str, Any]) -> None:
        """Take a recommendation that was published before this process started."""
        self._published[group] = record

    def apply_batch(self, batch: Batch, seen_ms: int) -> None:
        """Take what a poll of ``__consumer_offsets`` brought; ``seen_ms`` is when it was read."""
        self.counts.records.update(batch.records)
        self.counts.skipped.update(batch.skipped)
        self.counts.errors.update(batch.errors)
        for key, commit in batch.commits.items():
            partition = TopicPartition(key.topic, key.partition)
            if commit is not None:
                self.commits.setdefault(key.group, {})[partition] = commit
                self._readers.setdefault(key.topic, set()).add(key.group)
            elif (known := self.commits.get(key.group)) is not None:
                known.pop(partition, None)
                if not known:
                    del self.commits[key.group]
        for group in sorted(batch.groups):
            self._apply_group(group, batch.groups[group], seen_ms)

    def _apply_group(self, group: str, metadata: GroupMetadata | None, seen_ms: int) -> None:
        if metadata is None:
            for table in (self.groups, self.assigned, self.applications):
                table.pop(group, None)
            return
        self.groups[group] = metadata
        self.assigned[group] = self._owners(metadata)
        known = self.applications.get(group)
        generation = read_streams_generation(
            group, metadata, known.newest.source_topics if known else {}
        )
        if generation is None:
            self.applications.pop(group, None)
            return
        if known is None:
            known = self.applications[group] = Application(generation)
        elif (
            generation.generation <= known.newest.generation
            and generation.as_of_ms <= known.newest.as_of_ms
        ):
            return  # known: the log is read again from its start after a lost connection
        known.advance(generation, seen_ms)
        published = self._published.get(group)
        if published is None:
            return
        if known.precedes(published):
            known.pending.clear()  # decided before that one was
        elif known.holds(published):
            with suppress(CaughtupError):  # somebody else's record: decide for ourselves
                known.restore(published)

    def _owners(self, metadata: GroupMetadata) -> dict[TopicPartition, GroupMember]:
        if metadata.protocol_type != "consumer":
            return {}
        owners: dict[TopicPartition, GroupMember] = {}
        for member in metadata.members:
            if member.assignment:
                try:
                    assignment = decode_assignment(member.assignment)
                except DecodeError as error:
                    self.counts.errors[2, error.code] += 1
                    continue
                owners.update(dict.fromkeys(assignment.partitions, member))
        return owners

    def decide(self, now_ms: int) -> Iterator[Mapping[str, Any]]:
        """Decide every generation that is due, and yield the records that are to be published."""
        for group in sorted(self.applications):
            # Looked up late: the caller may apply events between two records.
            application = self.applications.get(group)
            if application is None:
                continue
            parameters = self.parameters(group)
            for record in application.decide(self.cluster, parameters, self.ends, now_ms):
                self._published[group] = record
                yield record

    def leave_the_past(self) -> None:
        """Take what was read so far as history: only the newest generations are still decided."""
        for application in self.applications.values():
            application.leave_the_past()

    def awaited_groups(self) -> list[str]:
        """Name the applications with a generation that isn't decided yet, sorted."""
        return sorted(group for group, known in self.applications.items() if known.pending)

    def wanted_topics(self) -> Callable[[str], bool]:
        """Give a test for the topics whose end offsets matter to any group as of now.

        The test holds on to nothing of the state: another thread may call it while events come.
        """
        topics = {p.topic for table in self.commits.values() for p in table}
        topics.update(p.topic for table in self.assigned.values() for p in table)
        for group in self.applications:
            told = self.parameters(group).changelogs or {}
            topics.update(topic for changelogs in told.values() for topic in changelogs)
        prefixes = tuple(f"{group}-" for group in self.applications)
        return lambda topic: topic in topics or topic.startswith(prefixes)

    def nearest_commit(self, partition: TopicPartition, end: int) -> int | None:
        """Give the last offset before ``end`` that any group committed of a partition."""
        commits = (
            commit.offset
            for group in self._readers.get(partition.topic, ())
            if (commit := self.commits.get(group, {}).get(partition)) is not None
        )
        return max((offset for offset in commits if offset < end), default=None)

    def group_names(self) -> list[str]:
        """Every group that has members or commits, sorted."""
        return sorted(self.commits.keys() | self.groups.keys())

    def group_type(self, group: str) -> str | None:
        """Name the kind of a group; None when only its commits are known."""
        metadata = self.groups.get(group)
        return None if metadata is None else group_type(metadata)

    def partition_rows(self, group: str) -> list[PartitionRow]:
        """Every partition that a group committed or was assigned, sorted, with its lag.

        A commit on a partition of a topic that no longer exists has no end offsets and no lag.
        """
        commits = self.commits.get(group, {})
        owners = self.assigned.get(group, {})
        rows = []
        for partition in sorted(commits.keys() | owners.keys()):
            commit = commits.get(partition)
            committed = None if commit is None else commit.offset
            ends = self.ends.latest(partition)
            lag = None if ends is None else partition_lag(committed, ends)
            rows.append(PartitionRow(partition, committed, ends, lag, owners.get(partition)))
        return rows

    def task_rows(self, group: str) -> list[TaskCopy]:
        """Every copy of every task of a Streams application, once its generation is decided."""
        application = self.applications.get(group)
        if application is None or application.decided is None:
            return []
        decided = application.decided
        commits = self.commits.get(group, {})

        def processed_since(task: TaskId) -> bool:
            return any(
                commit.commit_timestamp_ms > decided.generation.as_of_ms
                for partition in decided.generation.sources(task)
                if (commit := commits.get(partition)) is not None
            )

        trusted = decided.exact.decision if decided.exact.result == "match" else None
        return task_table(decided.generation, decided.inputs, trusted, processed_since)
