"""The state of one cluster, which events change and values are read from: no I/O, no clock.

It also knows the topics whose end offsets matter to any group, and those whose replicas' racks do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from caughtup.models.commits.applying import apply_live, apply_past, delete
from caughtup.models.commits.table import CommitTable
from caughtup.models.connect_clusters.table import (
    ConnectClusters,
    ReadGeneration,
    read_connect_groups,
)
from caughtup.models.copies.catch_up_rates import CatchUpRates
from caughtup.models.copies.watch import CopyWatches
from caughtup.models.decisions.applications import Applications
from caughtup.models.decisions.deciding import DecisionContext, decide_if_due
from caughtup.models.decisions.life import GenerationLife
from caughtup.models.decisions.task_table import TaskCopy, coordinator_task_table, task_table
from caughtup.models.faults import Faults, Isolation, RefusedRecords, SetAsideRecords
from caughtup.models.groups.membership import ReadGroup, read_classic_groups
from caughtup.models.groups.table import GroupTable, TopicNames
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.assessment import Assessments
from caughtup.models.lag.figures import CommitSource
from caughtup.models.lag.group_lag import PartitionRow, partition_rows
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.pipeline_progress import StreamProgressTable
from caughtup.models.polls.batch import Batch
from caughtup.models.polls.commit_columns import CommitColumns
from caughtup.models.reading import ReaderCounts
from caughtup.models.reassignments.events import ReassignmentEvents
from caughtup.models.reassignments.tracker import ReassignmentTracker
from caughtup.models.reassignments.watch import ReassignmentWatch
from caughtup.models.rebalances.table import Rebalances
from caughtup.models.rebalances.topics import TopicChanges
from caughtup.models.recent.recent import Recent
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.sharing import HeldPartitions, TopicListers
from caughtup.models.spark_queries import SparkQueries
from caughtup.models.state.group_decisions import (
    GroupDecisions,
    ReadDecision,
    compare_classic_groups,
)
from caughtup.models.state.rebalancing import Rebalancing
from caughtup.models.state.wanted_topics import known_replicas, racked_topics, wanted_topics
from caughtup.models.tasks.positions import TaskPositions
from caughtup.models.transactions.table import TransactionTable
from caughtup.models.watching import Watching, is_end
from caughtup.models.wire.group_metadata import GroupMetadata
from caughtup.models.wire.record_keys import RecordType


class ClusterState:
    """The state of one cluster, changed by ``apply_*`` with events, and by deciding and assessing.

    Groups and topics that ``watching`` leaves out are treated as if they didn't exist.
    """

    def __init__(
        self,
        cluster: str,
        parameters: Mapping[str, ApplicationParameters],
        watching: Watching | None = None,
    ) -> None:
        self.cluster = cluster
        self.watching = watching or Watching()
        #: The groups that this instance has, if several share them.
        self.held = HeldPartitions()
        self.listers = TopicListers()
        self.ends = EndOffsetTable()
        self.reassignments = ReassignmentTracker()
        self.faults = Faults()
        self.reassignment_watch = ReassignmentWatch(self.faults)
        self.reassignment_events = ReassignmentEvents()
        self.counts = ReaderCounts()
        self.refused = RefusedRecords()
        self.set_aside = SetAsideRecords()
        self.commits = CommitTable()
        self.positions = TaskPositions()
        self.rates = CatchUpRates()
        self.pipeline = StreamProgressTable()
        self.topics = TopicNames()
        self.groups = GroupTable(
            self.topics.names, self.ends.partition_counts, self.watching.membership
        )
        #: The racks of replicas, if a leader may have assigned by rack; only replaced as a whole.
        self.replicas: Mapping[TopicPartition, Sequence[str | None]] = {}
        #: The partitions without a leader when ends were last listed, with the brokers of their
        #: replicas that were down; None if this instance never listed ends. Replaced as a whole.
        self.leaderless: Mapping[TopicPartition, tuple[int, ...]] | None = None
        #: The last records of the classic groups that are watched whatever the patterns.
        self.kept_records: dict[str, GroupMetadata] = {}
        self.applications = Applications(parameters, self.faults)
        self.connect = ConnectClusters()
        self.spark = SparkQueries()
        self.transactions = TransactionTable()
        #: When each group was last asked about (ms), if coordinators are asked instead of their log read.
        self.asked_ms: dict[str, int] = {}
        self.assessments = Assessments()
        self.recent = Recent()
        self.topic_changes = TopicChanges()
        self.rebalances = Rebalances()
        self.rebalancing = Rebalancing(
            self.rebalances,
            self.recent.happenings,
            self.groups,
            self.commits,
            self.ends,
            self.applications,
            self.topic_changes,
            self.faults,
        )
        self.group_decisions = GroupDecisions(self.groups, self.topics, self.ends, self.faults)
        self.watches = CopyWatches(
            self.ends, self.commits, self.positions, self.rates, self.transactions
        )

    def apply_batch(
        self,
        batch: Batch,
        seen_ms: int,
        read: Mapping[str, ReadGroup] | None = None,
        connect: Mapping[str, ReadGeneration] | None = None,
        *,
        past: bool = False,
        compared: frozenset[str] | None = None,
        decisions: Mapping[str, ReadDecision] | None = None,
    ) -> None:
        """Apply a poll of ``__consumer_offsets``; ``seen_ms`` is when it was read.

        ``read`` are its classic groups, ``connect`` its Connect groups and ``decisions`` its
        generations of consumers, if another thread has decoded and compared them already. ``past``:
        the service hasn't read to the log's end yet, so the records are from before it started, and
        no assignments are compared. ``compared``: compare those of these groups only, of whose
        records it isn't known when they were written; None for all groups and records that were
        read as soon as they were written.
        """
        self.counts.records.update(batch.records)
        self.counts.skipped.update(batch.skipped)
        self.counts.errors.update(batch.errors)
        watching, commits = self.watching, self.watching.commits(batch.commits)
        only = frozenset[str]() if past else compared
        rebalancing = self.rebalancing.before(batch, only)
        converted = self.group_decisions.before(batch, only)
        if past:
            apply_past(self.commits, commits)
            self.commits.note_all()
        else:
            self.apply_commits(commits, seen_ms)
        if self.topics.learn_from_commits(commits, self.commits.topics()):
            self.groups.forget_owners()
            self.group_decisions.names_changed(seen_ms)
        for group in watching.always & batch.groups.keys():
            metadata = batch.groups[group]
            if metadata is None:
                self.kept_records.pop(group, None)
            else:
                self.kept_records[group] = metadata
        classic = read_classic_groups(batch.groups) if read is None else read
        for group, found in watching.classic(classic).items():
            with self._isolated(group, seen_ms):
                self._apply_classic(group, found, seen_ms, batch.group_offsets.get(group))
        if connect is None:
            connect = read_connect_groups(batch.groups)
        generations = {
            group: found for group, found in connect.items() if watching.is_watched(group)
        }
        for group, apply in self.connect.apply_groups(batch.groups, generations, seen_ms):
            with self._isolated(group, seen_ms):
                apply()
        for consumer_key, consumer_record in batch.consumer_group_records.items():
            if watching.is_watched(consumer_key.group, gone=is_end(consumer_key, consumer_record)):
                with self._isolated(consumer_key.group, seen_ms):
                    self.groups.apply_consumer(consumer_key, consumer_record)
        for group, share_group in batch.share_groups.items():
            if watching.is_watched(group, gone=share_group is None):
                with self._isolated(group, seen_ms):
                    self.groups.apply_share(group, share_group)
        for streams_key, streams_record in batch.streams_group_records.items():
            if watching.is_watched(streams_key.group, gone=is_end(streams_key, streams_record)):
                with self._isolated(streams_key.group, seen_ms):
                    self.groups.apply_streams(streams_key, streams_record)
        read_ms = seen_ms if compared is None and not past else None
        self.rebalancing.compare(batch, rebalancing, read_ms, seen_ms)
        if not past:
            if decisions is None:
                # A look decides the last generation again, from the record that it keeps.
                decisions = compare_classic_groups(batch.groups) if only is None else {}
            self.group_decisions.compare(batch, only, decisions, converted, seen_ms)
        for group in sorted(compared or ()):
            self.rebalancing.settle(group, seen_ms)

    def _apply_classic(
        self, group: str, found: ReadGroup, seen_ms: int, offset: int | None
    ) -> None:
        if isinstance(found, Exception):
            raise found
        self.groups.apply_classic(group, found and found.membership)
        self.applications.apply_generation(group, found and found.generation, seen_ms, offset)
        for error in found.errors if found else ():
            self.counts.errors[RecordType.GROUP_METADATA, error.code] += 1

    def _isolated(self, group: str, now_ms: int) -> Isolation:
        """Return a context in which an error removes the group, except its commits."""

        def forget(_: Exception) -> None:
            self.groups.forget(group)
            self.applications.forget(group)
            self.connect.forget(group)
            self.group_decisions.doubt(group)

        return self.faults.isolated("group records", group, now_ms, forget)

    def apply_ends(
        self,
        partition: TopicPartition,
        ends: EndOffsets | None,
        topic_id: bytes | None = None,
        now_ms: int | None = None,
    ) -> None:
        """Apply a partition's end offsets, None if it is deleted, and its topic's id, if known."""
        before = self.ends.latest(partition)
        if ends is not None:
            ends = ends.with_readable_end_of(before)
        self.ends.apply(partition, ends, now_ms)
        if ends is None:
            self.topics.forget(partition.topic)
        renamed = topic_id is not None and self.topics.learn(
            partition.topic, topic_id, confirmed=True
        )
        if renamed or (before is None) != (ends is None):
            self.groups.forget_owners()
            self.group_decisions.topic_changed(partition.topic, now_ms or 0)

    def apply_commits(self, commits: CommitColumns, now_ms: int) -> None:
        """Apply new commits; one that fails is removed and counted."""

        def forget(group: str, partition: TopicPartition, error: Exception) -> None:
            self.faults.note("commits", group, error, now_ms)
            delete(self.commits, group, partition)

        apply_live(self.commits, commits, self.ends, now_ms, forget)

    def due(self, now_ms: int) -> Iterator[tuple[GenerationLife, DecisionContext]]:
        """Yield every generation that may be due, each once the one before it is settled.

        Each comes with all inputs of its decision: ``decide_if_due`` may run on any thread.
        """
        for life, known in self.applications.due(self.ends, self.commits, self.positions, now_ms):
            watch = self.watches.get(life.generation.group)
            at_ms = None if watch is None else watch.future_worthwhile_ms(now_ms)
            rates = None if watch is None else watch.rates
            replicas = known_replicas(self.replicas, life.generation)
            yield life, replace(known, replicas=replicas, worthwhile_at_ms=at_ms, rates=rates)

    def decide(self, now_ms: int) -> Iterator[RecommendationRecord]:
        """Decide all that is due on this thread, and yield the recommendations."""
        for life, known in self.due(now_ms):
            recommended, generation = None, life.generation
            with self.applications.deciding(generation.group, now_ms, generation):
                decided = decide_if_due(self.cluster, life, known, now_ms)
                recommended = self.applications.settle(decided)
            if recommended is not None:
                yield recommended

    def wanted_topics(self) -> Callable[[str], bool]:
        """Return a test for the topics whose end offsets matter to any group as of now.

        The test keeps no reference to the state: another thread may call it while events are
        applied.
        """
        topics = set(self.commits.topics()) | self.connect.transactional_topics()
        return wanted_topics(topics, self.groups, self.applications)

    def racked_topics(self) -> Callable[[str], bool] | None:
        """Return a test for the topics whose ``replicas`` have to be looked up now, or None."""
        return racked_topics(self.applications)

    def unnamed_topics(self) -> set[str]:
        """Return the topics of groups on the new protocol whose ids are unknown.

        Their assignments have topic ids only.
        """
        topics: set[str] = set()
        for group in self.groups.consumer.values():
            topics |= group.topics()
        return self.topics.unknown(topics)

    def group_names(self) -> list[str]:
        """Return every group that has members or commits, sorted."""
        return sorted(self.commits.groups() | self.groups.names())

    def group_type(self, group: str) -> str | None:
        """Return the kind of a group; None if only its commits are known."""
        if group in self.spark.queries:
            return "spark"
        membership = self.groups.membership(group)
        return None if membership is None else membership.group_type

    def partition_rows(self, group: str) -> Iterator[PartitionRow]:
        """Yield every partition that a group committed or was assigned, sorted, with its lag."""
        return partition_rows(self.commits.last(group), self.groups.membership(group), self.ends)

    def assess(self, group: str, now_ms: int, read_ms: int | None = None) -> Iterator[object]:
        """Assess a group and its copies again, a step at a time.

        ``read_ms`` as in ``Assessments.assess``; for a Spark query it is the time of its
        checkpoint's look. A group that is asked about is assessed as of its last answer, while that is
        not too old. The caller may do other work between two steps. A group whose assessment
        fails is unknown, and its copies aren't watched.
        """
        if (query := self.spark.queries.get(group)) is not None:
            read_ms = query.looked_ms
        elif (asked_ms := self.asked_ms.get(group)) is not None:
            read_ms = asked_ms
            if now_ms - asked_ms <= self.assessments.asked_allowed_ms:
                # As of the answer, and of the log ends that were listed after it.
                now_ms = max(asked_ms, min(now_ms, self.ends.newest_ms or 0))
        with self.faults.isolated(
            "assessment", group, now_ms, lambda error: self.assessments.fail(group, error)
        ):
            membership = self.groups.membership(group)
            yield from self.assessments.assess(
                group,
                self.commits,
                membership,
                self.ends,
                now_ms,
                read_ms,
                self.transactions.holders,
                self._commit_source(group),
            )
        with self.faults.isolated("copies", group, now_ms, lambda _: self.watches.forget(group)):
            yield from self.watch_copies(group, now_ms)

    def _commit_source(self, group: str) -> CommitSource:
        if group in self.groups.share:
            return "share"
        return "ask" if group in self.asked_ms else "log"

    def at_rest(self, group: str) -> object | None:
        """Return an object that stays the same while nothing changes that is shown of a group.

        But the ages of unread records grow. None for a group that was not assessed since a change, for
        a Streams application, and for a Spark query.
        """
        is_application = group in self.groups.streams or group in self.applications
        if is_application or group in self.spark.queries:
            return None
        membership = self.groups.membership(group)
        return self.assessments.at_rest(group, self.commits, membership, self.ends)

    def watch_copies(self, group: str, now_ms: int) -> Iterator[None]:
        """Assess the copies of a Streams application again, in steps.

        Other groups, and applications without a decision, have no steps. The caller may do other
        work between two.
        """
        by_coordinator = group in self.groups.streams  # it assigns the tasks, as in task_rows
        application = None if by_coordinator else self.applications.get(group)
        decided = None if application is None else application.decided
        if decided is None and not by_coordinator:
            self.watches.forget(group)
            return iter(())
        parameters = self.applications.parameters(group)
        return self.watches.watch(group, decided, self.task_rows(group), parameters, now_ms)

    def open_transactions(self, now_ms: int) -> Iterator[OpenTransaction]:
        """Yield the transactions that hold something back, the oldest first."""
        return self.transactions.lines(self.assessments.blocked, now_ms)

    def forget_gone(self) -> None:
        """Remove the assessments and decisions of groups that exist no more.

        Which these are is found out now: a group that appeared while others were assessed stays.
        """
        groups = set(self.group_names())
        for group in self.asked_ms.keys() - groups:
            del self.asked_ms[group]
        self.assessments.keep_only(groups)
        self.watches.keep_only(groups)
        self.rebalances.keep_only(groups)
        self.group_decisions.keep_only(groups)

    def task_rows(self, group: str) -> list[TaskCopy]:
        """Return every copy of every task of a Streams application.

        If its leader assigns the tasks, there are none before a generation is decided.
        """
        positions = self.positions.of(group)
        if (by_coordinator := self.groups.streams.get(group)) is not None:
            return coordinator_task_table(by_coordinator, positions)
        application = self.applications.get(group)
        if application is None or application.decided is None:
            return []
        decided = application.decided
        return task_table(decided.copies, decided.generation, positions, self.commits.of(group))
