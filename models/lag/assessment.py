"""The last assessment of every group, computed one partition at a time.

An assessment reads histories and takes longer than a scrape may take, so scrapes, the page and the
commands read the last one. Partitions without lag aren't stored: their lag in seconds is 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from caughtup.models.commits.table import CommitTable
from caughtup.models.errors import error_code
from caughtup.models.groups.membership import Membership
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.assessed import (
    AT_THE_END,
    ON_OTHERS,
    ON_REPEATS,
    Assessed,
    AssessedPartitions,
    Measure,
)
from caughtup.models.lag.figures import MAX_POLL_INTERVAL_MS, CommitSource, lag_figures
from caughtup.models.lag.lagging import (
    HELD_MS,
    SMALL_STEP,
    Before,
    partitions_with_lag,
    partitions_without_commit,
)
from caughtup.models.lag.unread import UNREAD_ALLOWED_MS, UNREAD_MOMENTS_MS, unless_unread
from caughtup.models.lag.verdict import (
    GroupVerdict,
    Verdict,
    group_verdict,
    partition_verdict,
    told_again,
)
from caughtup.models.records.transactions import OpenTransaction

#: Stands for unknown holders of last stable offsets.
NO_HOLDERS: Mapping[TopicPartition, OpenTransaction] = MappingProxyType({})


_NONE = AssessedPartitions()


class _Topic(NamedTuple):
    """A topic, and ``EndOffsetTable.moved`` and ``changed`` of it."""

    name: str
    moved: int
    changed: int


class _Seen(NamedTuple):
    """The inputs of a group's assessment; while they are the same, only time changes it.

    ``changed`` is ``CommitTable.changed`` of the group, with lag ``CommitTable.touched``;
    ``topics`` are those that it reads. ``depends`` has what else changes any of it: ON_OTHERS,
    ON_REPEATS. Until ``due_ms`` time alone changes none of it but ages, and until ``retold_ms`` no
    reason has another text.
    """

    before: Before
    changed: int
    membership: Membership | None
    topics: list[_Topic]
    has_lag: bool
    depends: int
    due_ms: float
    retold_ms: float

    def holds(self, ends: EndOffsetTable) -> bool:
        """Return whether no log end changed that matters."""
        if self.depends & ON_REPEATS:
            return all(ends.changed(topic) == changed for topic, _, changed in self.topics)
        return all(ends.moved(topic) == moved for topic, moved, _ in self.topics)


class Assessments:
    """The last assessment of each group: its verdict, and its partitions that have lag.

    No figure of a group without lag depends on the time, so it is assessed again only after a new
    commit, a change of members or another log end. Of a group with lag, those partitions are assessed
    again of which any of that changed, or of which time alone would change the verdict or a word of
    its reason; meanwhile the age of the oldest unread record grows.
    """

    def __init__(self) -> None:
        #: For how long a group may not be asked about before it is not blamed for missing commits (ms).
        self.asked_allowed_ms = UNREAD_ALLOWED_MS
        self.verdicts: dict[str, GroupVerdict] = {}
        #: The partitions with lag of each group that has any.
        self._behind: dict[str, AssessedPartitions] = {}
        self._failed: set[str] = set()
        self._seen: dict[str, _Seen] = {}
        #: When each group was last looked at (ms), whether or not anything had to be assessed.
        self._looked_ms: dict[str, int] = {}
        #: Since when (ms) a group has been assigned partitions on which it never committed.
        self.uncommitted: dict[str, dict[TopicPartition, int]] = {}
        #: The blocked partitions of each group that has any.
        self.blocked: dict[str, tuple[TopicPartition, ...]] = {}
        #: The groups that were seen beyond a last stable offset: they read uncommitted records.
        self.reads_uncommitted: set[str] = set()

    def assess(
        self,
        group: str,
        commits: CommitTable,
        membership: Membership | None,
        ends: EndOffsetTable,
        now_ms: int,
        read_ms: int | None = None,
        holders: Mapping[TopicPartition, OpenTransaction] = NO_HOLDERS,
        source: CommitSource = "log",
    ) -> Iterator[object]:
        """Assess one group in steps of many partitions without lag, or one with lag.

        ``read_ms`` is when ``__consumer_offsets`` was last read to its end, None for just now: long
        after that, no group is said not to commit. ``holders`` are the transactions that hold back
        the last stable offset of a partition. ``source``: as in ``LagFigures``. The caller may do other work between two steps;
        changes made meanwhile may or may not count. The group's verdict is set after the last step.
        """
        unread_ms = 0 if read_ms is None else now_ms - read_ms
        is_late = unread_ms > UNREAD_MOMENTS_MS
        seen = self._seen.get(group)
        is_same = seen is not None and _is_same(seen, group, commits, membership, ends)
        if seen is not None and (
            seen.membership is not membership
            or (seen.has_lag and (is_late or now_ms < self._looked_ms[group]))
        ):
            seen, is_same = None, False
        self._looked_ms[group] = now_ms
        if seen is not None and is_same and now_ms < seen.due_ms:
            self._tell_again(group, seen, now_ms)
            return
        owners = {} if membership is None else membership.owners
        allowed_ms = (membership and membership.rebalance_timeout_ms) or MAX_POLL_INTERVAL_MS
        before = Before(commits.changes, ends.samples)
        touched, changed = commits.touched(group), commits.changed(group)
        names = {topic for topic, _, _ in commits.rows_of(group)} | {one.topic for one in owners}
        topics = [_Topic(name, ends.moved(name), ends.changed(name)) for name in sorted(names)]
        is_touched = seen is not None and seen.changed != touched
        is_sampled = seen is not None and topics != seen.topics
        found = yield from partitions_with_lag(
            group, commits, ends, seen and seen.before, now_ms - HELD_MS
        )
        left = found.left
        if found.reads_uncommitted:
            self.reads_uncommitted.add(group)
        uncommitted, moved = yield from partitions_without_commit(
            group, owners, commits, ends, seen and seen.before
        )
        found.changed.update(moved)
        since = self._uncommitted_since(group, uncommitted, now_ms)
        left += uncommitted
        behind = self._behind.setdefault(group, AssessedPartitions())
        for partition in behind.partitions() - set(left):
            behind.remove(partition)
        depends = ON_REPEATS if found.beyond else 0
        on_what = (ON_OTHERS if is_touched else 0) | (ON_REPEATS if is_sampled else 0)
        reads_uncommitted = group in self.reads_uncommitted
        longest_ms, is_known = None, False
        verdicts: list[tuple[TopicPartition, Verdict]] = []
        for number, partition in enumerate(left):
            if (
                seen is not None
                and partition not in found.changed
                and (kept := behind.unless_changed(partition, on_what, now_ms)) is not None
            ):
                depends |= kept
                verdicts.append((partition, behind.verdict(partition, now_ms)))
                if not number % SMALL_STEP:
                    yield partition
                continue
            history = ends.history(partition)
            if history is None:
                behind.remove(partition)
                continue
            known = commits.find(group, partition)
            interval_ms = None if known is None else known.interval_ms
            on_others = interval_ms is None
            if on_others and not is_known:
                longest_ms, is_known = (yield from commits.interval_steps(group)), True
            figures = lag_figures(
                known,
                history,
                now_ms,
                longest_ms if on_others else interval_ms,
                allowed_ms,
                since.get(partition, 0),
                holders.get(partition),
                reads_uncommitted,
                source,
            )
            late_ms = UNREAD_ALLOWED_MS if source == "log" else self.asked_allowed_ms
            verdict = unless_unread(partition_verdict(figures), figures, unread_ms, late_ms)
            depends |= behind.put(
                partition, verdict, figures, known, history, now_ms, on_others=on_others
            )
            verdicts.append((partition, verdict))
            yield partition
        self.verdicts[group] = group_verdict(verdicts, found.at_the_end)
        blocked = tuple(p for p, verdict in verdicts if verdict.verdict == "blocked")
        if blocked:
            self.blocked[group] = blocked
        else:
            self.blocked.pop(group, None)
        if not behind:
            self._behind.pop(group, None)
        self._failed.discard(group)
        self._seen.pop(group, None)
        if not found.held and not is_late:
            has_lag = bool(verdicts)
            number = touched if has_lag else changed
            due_ms, retold_ms = behind.due_ms(), behind.retold_ms(now_ms)
            self._seen[group] = _Seen(
                before, number, membership, topics, has_lag, depends, due_ms, retold_ms
            )

    def _tell_again(self, group: str, seen: _Seen, now_ms: int) -> None:
        """Update the reasons of a group of which nothing changes but times."""
        if now_ms < seen.retold_ms:
            return
        behind, verdict = self._behind[group], self.verdicts[group]
        self._seen[group] = seen._replace(retold_ms=behind.retold_ms(now_ms))
        if verdict.partition is not None and verdict.partition in behind.partitions():
            reason = behind.reason(verdict.partition, now_ms)
            self.verdicts[group] = told_again(verdict, reason)

    def _uncommitted_since(
        self, group: str, uncommitted: Iterable[TopicPartition], now_ms: int
    ) -> dict[TopicPartition, int]:
        """Return since when each partition without a commit has been assigned to a group (ms)."""
        before = self.uncommitted.get(group, {})
        since = {partition: before.get(partition, now_ms) for partition in uncommitted}
        if since:
            self.uncommitted[group] = since
        else:
            self.uncommitted.pop(group, None)
        return since

    def at_rest(
        self,
        group: str,
        commits: CommitTable,
        membership: Membership | None,
        ends: EndOffsetTable,
    ) -> object | None:
        """Return a token that stays the same object while nothing of a group changes but its ages.

        Return None for a group that has to be assessed again.
        """
        seen = self._seen.get(group)
        return seen if seen and _is_same(seen, group, commits, membership, ends) else None

    def fail(self, group: str, error: Exception) -> None:
        """Record that assessing a group failed: its verdict is unknown until that succeeds."""
        reason = f"the service could not compute it: {error_code(error)}"
        self.verdicts[group] = GroupVerdict("unknown", None, reason)
        self.blocked.pop(group, None)
        self._failed.add(group)
        self._seen.pop(group, None)

    def is_assessed(self, group: str) -> bool:
        """Return whether the last assessment of a group exists and didn't fail."""
        return group in self.verdicts and group not in self._failed

    def looked_ms(self, group: str) -> int:
        """Return when a group was last looked at (ms), 0 for never; its ages are as of then."""
        return self._looked_ms.get(group, 0)

    def behind(self, group: str) -> Collection[TopicPartition]:
        """Return a group's partitions that have lag."""
        found = self._behind.get(group)
        return () if found is None else found.partitions()

    def find(self, group: str, partition: TopicPartition) -> Assessed | None:
        """Return a partition's assessment; None if its group has none."""
        if not self.is_assessed(group):
            return None
        found = self._behind.get(group)
        return AT_THE_END if found is None else found.find(partition, self._looked_ms[group])

    def column(
        self, measure: Measure, group: str, partitions: Sequence[TopicPartition]
    ) -> list[float]:
        """Return one measure of each partition, NaN where it is unknown.

        All are unknown if the group has no assessment.
        """
        if not self.is_assessed(group):
            return [math.nan] * len(partitions)
        found = self._behind.get(group, _NONE)
        return found.column(measure, partitions, self._looked_ms[group])

    def keep_only(self, groups: set[str]) -> None:
        """Forget the groups that are gone."""
        for group in (self._behind.keys() | self.verdicts.keys()) - groups:
            self._behind.pop(group, None)
            self.uncommitted.pop(group, None)
            self.blocked.pop(group, None)
            self.verdicts.pop(group, None)
            self._seen.pop(group, None)
            self._looked_ms.pop(group, None)
            self._failed.discard(group)
        self.reads_uncommitted &= groups


def _is_same(
    seen: _Seen,
    group: str,
    commits: CommitTable,
    membership: Membership | None,
    ends: EndOffsetTable,
) -> bool:
    """Return whether the inputs of a group's assessment are those that were seen."""
    number = commits.touched(group) if seen.has_lag else commits.changed(group)
    return number == seen.changed and seen.membership is membership and seen.holds(ends)
