"""Compares the assignments of groups before and after a batch of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from caughtup.models.commits.table import CommitTable, LastCommits
from caughtup.models.decisions.applications import Applications
from caughtup.models.faults import Faults
from caughtup.models.groups.membership import Membership
from caughtup.models.groups.table import GroupTable
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.batch import Batch
from caughtup.models.rebalances.table import Rebalances
from caughtup.models.rebalances.topics import TopicChanges
from caughtup.models.recent.happenings import Happenings, rebalanced
from caughtup.models.wire.record_keys import RecordType

#: The records that complete a generation or a target assignment.
COMPLETING = frozenset(
    {
        RecordType.GROUP_METADATA,
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
    }
)
#: The records of which a group has another assignment, or none any more.
DECIDING = COMPLETING | {RecordType.CONSUMER_GROUP_METADATA, RecordType.STREAMS_GROUP_METADATA}
#: The records of what a member has now.
_RECONCILING = frozenset(
    {
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    }
)
#: A group before its first member.
NEW_GROUP = Membership("", 0, (), {}, frozenset())


class _Before(NamedTuple):
    """What is known of a group before a batch: its last commits, and when its next rebalance is due."""

    commits: LastCommits
    due_ms: int | None


class Rebalancing:
    """Compares each group's decided assignments, and notes the rebalances between them."""

    def __init__(
        self,
        rebalances: Rebalances,
        happenings: Happenings,
        groups: GroupTable,
        commits: CommitTable,
        ends: EndOffsetTable,
        applications: Applications,
        topic_changes: TopicChanges,
        faults: Faults,
    ) -> None:
        self._rebalances = rebalances
        self._happenings = happenings
        self._groups = groups
        self._commits = commits
        self._ends = ends
        self._applications = applications
        self._topic_changes = topic_changes
        #: Returns when a group last got another coordinator (ms), None if that isn't known.
        self.coordinator_moved_ms: Callable[[str], int | None] = lambda _: None
        self._faults = faults

    def before(self, batch: Batch, only: frozenset[str] | None) -> Mapping[str, _Before]:
        """Return what has to be known of groups before a batch is applied, to pass to ``compare``.

        ``only``: compare no other groups; None for all.
        """
        new_keys = (*batch.consumer_group_records, *batch.streams_group_records)
        touched = {*batch.groups, *(key.group for key in new_keys)}
        deciding = {
            *batch.groups,
            *(key.group for key in new_keys if key.record_type in DECIDING),
        }
        if only is not None:
            touched &= only
        for group in sorted(touched):
            if not self._rebalances.is_complete(group):
                decided = self._groups.decided(group)
                if decided is None and only is None:
                    decided = (
                        NEW_GROUP  # all groups are known that existed before the service started
                    )
                self._rebalances.begin(group, decided)
            if not self._rebalances.has_revoking(group):
                self._rebalances.note_revoking(group, self._groups.revoking(group), None)
        found: dict[str, _Before] = {}
        for group in sorted(touched & deciding):
            application = self._applications.get(group)
            due_ms = None if application is None else application.newest.due_ms()
            found[group] = _Before(self._commits.last(group), due_ms)
        return found

    def compare(
        self, batch: Batch, before: Mapping[str, _Before], seen_ms: int | None, now_ms: int
    ) -> None:
        """Compare after the batch. ``seen_ms``: when it was read; None if it is from the past."""
        new_keys = (*batch.consumer_group_records, *batch.streams_group_records)
        for group in sorted({key.group for key in new_keys if key.record_type in _RECONCILING}):
            with self._faults.isolated("rebalances", group, now_ms):
                self._rebalances.note_revoking(group, self._groups.revoking(group), seen_ms)
        for group, known in before.items():
            with self._faults.isolated("rebalances", group, now_ms):
                decided = self._groups.decided(group)
                at_ms = seen_ms if decided is None else decided.as_of_ms or seen_ms
                rebalance = self._rebalances.compare(
                    group,
                    decided,
                    at_ms,
                    (known.commits, self._commits.last(group)),
                    known.due_ms,
                    self.coordinator_moved_ms(group),
                    self._exists,
                    self._topic_changes.is_new,
                )
                if rebalance is not None:
                    self._happenings.note(rebalanced(group, rebalance, now_ms))

    def _exists(self, topic: str) -> bool:
        return not self._topic_changes.is_gone(topic) and (
            self._ends.latest(TopicPartition(topic, 0)) is not None
        )

    def settle(self, group: str, now_ms: int) -> None:
        """Note which partitions are committed on again since a group's last rebalance."""
        if not self._rebalances.is_settling(group):
            return

        def committed_after(partition: TopicPartition, at_ms: int) -> int | None:
            history = self._commits.find(group, partition)
            return None if history is None else history.first_after(at_ms)

        self._rebalances.settle(group, committed_after, now_ms)
