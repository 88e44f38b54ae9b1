"""The last assessment of every group, computed one partition at a time.

An assessment reads histories and takes longer than a scrape may take, so scrapes, the page and the
commands read the last one. Partitions without lag aren't stored: their lag in seconds is 0.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from caughtup.models.commits.table import CommitTable, CommittedTopic
from caughtup.models.errors import error_code
from caughtup.models.groups.membership import Membership
from caughtup.models.histories.end_columns import NOT_HELD_MS
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.figures import MAX_POLL_INTERVAL_MS, LagFigures, lag_figures
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS, lag_columns
from caughtup.models.lag.verdict import (
    NOTHING_TO_READ,
    GroupVerdict,
    Verdict,
    group_verdict,
    holds_seconds,
    partition_verdict,
)
from caughtup.models.polls.column_reader import Ints
from caughtup.models.records.transactions import OpenTransaction

#: Stands for unknown holders of last stable offsets.
NO_HOLDERS: Mapping[TopicPartition, OpenTransaction] = MappingProxyType({})

#: Commits are always read a little late. When the reader is later than the first of these (ms),
#: commits that it hasn't read yet look missing; beyond the second, no group is blamed for that.
UNREAD_MOMENTS_MS = 2_000
UNREAD_ALLOWED_MS = 30_000
#: A last stable offset that has stood still for less time (ms) is held back by a short transaction.
HELD_MS = 5_000
#: The verdicts that follow from missing or slow commits.
_BY_MISSING_COMMITS = frozenset({"slow", "diverging", "stalled", "stopped"})
#: Partitions per step, by columns and one by one: about a millisecond's work.
_STEP = 20_000
_SMALL_STEP = 1_000


class Assessed(NamedTuple):
    """The assessment of one partition of a group; None = unknown.

    ``lag_seconds`` is the age of the oldest unread record, ``error_seconds`` its greatest error and
    ``lag_seconds_method`` one of ``caught_up``, ``interpolated`` and ``at_least``. ``velocity`` is the growth
    of the lag in records a second. ``eta_seconds`` is the time until the group has caught up,
    inf = never. A ``PartitionLine`` has the figures of which it has a field.
    """

    verdict: str
    why: str
    lag_seconds: float | None
    error_seconds: float | None
    lag_seconds_method: str | None
    velocity: float | None
    eta_seconds: float | None


AT_THE_END = Assessed(*NOTHING_TO_READ[:2], 0.0, 0.0, "caught_up", None, 0.0)


#: The places of figures in an ``Assessed``.
_LAG_SECONDS = Assessed._fields.index("lag_seconds")


class _Seen(NamedTuple):
    """The inputs of a group's assessment, which holds until one of them changes, or with lag a while.

    ``changed`` is ``CommitTable.changed`` of the group, with lag ``CommitTable.touched``; ``topics``
    has ``EndOffsetTable.changed`` of each topic that it reads. ``at_the_end`` is the number of its
    partitions without lag.
    """

    changed: int
    membership: Membership | None
    topics: list[tuple[str, int]]
    at_the_end: int
    has_lag: bool


#: After the fields of an ``Assessed``, for a partition that has lag: when it was assessed, and until
#: when (ms) only its age grows if nothing else changes.
_AT_MS, _UNTIL_MS = len(Assessed._fields), len(Assessed._fields) + 1


def _age_at(kept: tuple[Any, ...], now_ms: int) -> float | None:
    """Return the age of a partition's oldest unread record (s), None if it is unknown."""
    seconds: float | None = kept[_LAG_SECONDS]
    return seconds and seconds + (now_ms - kept[_AT_MS]) / 1000


class Assessments:
    """The last assessment of each group: its verdict, and its partitions that have lag.

    No figure of a group without lag depends on the time, so it is assessed again only after a new
    commit, a change of members or a new sample of an end offset. With lag, partitions are also
    assessed again when time alone would change a verdict or a word of its reason; meanwhile the age
    of the oldest unread record grows.
    """

    def __init__(self) -> None:
        self.verdicts: dict[str, GroupVerdict] = {}
        # Each value has the fields of an Assessed, _AT_MS and _UNTIL_MS, as a plain tuple: the garbage
        # collector stops tracking tuples of plain values, so it doesn't traverse them each time.
        self._behind: dict[str, dict[TopicPartition, tuple[Any, ...]]] = {}
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
    ) -> Iterator[object]:
        """Assess one group in steps of many partitions without lag, or one with lag.

        ``read_ms`` is when ``__consumer_offsets`` was last read to its end, None for just now: long
        after that, no group is said not to commit. ``holders`` are the transactions that hold back
        the last stable offset of a partition. The caller may do other work between two steps;
        changes made meanwhile may or may not count. The group's verdict is set after the last step.
        """
        unread_ms = 0 if read_ms is None else now_ms - read_ms
        is_late = unread_ms > UNREAD_MOMENTS_MS
        behind = self._behind.setdefault(group, {})
        seen = self._unchanged(group, commits, membership, ends)
        if seen is not None and seen.has_lag and (is_late or now_ms < self._looked_ms[group]):
            seen = None
        self._looked_ms[group] = now_ms
        due: Collection[TopicPartition] = ()
        if seen is not None:
            due = [one for one, kept in behind.items() if kept[_UNTIL_MS] <= now_ms]
            if not due:
                return
        owners = {} if membership is None else membership.owners
        allowed_ms = (membership and membership.rebalance_timeout_ms) or MAX_POLL_INTERVAL_MS
        changed, touched = commits.changed(group), commits.touched(group)
        samples, layout = ends.samples, ends.layout
        topics: Iterable[str] = ()
        any_held = False
        if seen is None:
            committed = commits.columns_of(group)
            found = yield from _partitions_with_lag(committed, ends, now_ms - HELD_MS)
            at_the_end, left, any_held = found.at_the_end, found.left, found.held
            if found.reads_uncommitted:
                self.reads_uncommitted.add(group)
            uncommitted = yield from _partitions_without_commit(group, owners, commits)
            before = self.uncommitted.get(group, {})
            since = {partition: before.get(partition, now_ms) for partition in uncommitted}
            if since:
                self.uncommitted[group] = since
            else:
                self.uncommitted.pop(group, None)
            left += uncommitted
            due = set(left)
            for partition in behind.keys() - due:
                del behind[partition]
            topics = {*(of.topic for of in committed), *(one.topic for one in owners)}
        else:
            at_the_end, left, due = seen.at_the_end, list(behind), set(due)
            since = self.uncommitted.get(group, {})
        reads_uncommitted = group in self.reads_uncommitted
        longest_ms, is_known = None, False
        verdicts: list[tuple[TopicPartition, Verdict]] = []
        for partition in left:
            if partition not in due:
                kept = behind[partition]
                age = _age_at(kept, now_ms) or 0.0
                verdicts.append((partition, Verdict(kept[0], kept[1], age)))
                continue
            history = ends.history(partition)
            if history is None:
                behind.pop(partition, None)
                continue
            known = commits.find(group, partition)
            if not is_known and (known is None or known.interval_ms is None):
                longest_ms, is_known = (yield from commits.interval_steps(group)), True
            assigned_ms = since.get(partition, 0)
            figures = lag_figures(
                known,
                history,
                now_ms,
                longest_ms,
                allowed_ms,
                assigned_ms,
                holders.get(partition),
                reads_uncommitted,
            )
            verdict = _unless_unread(partition_verdict(figures), figures, unread_ms)
            until_ms = now_ms + 1000 * holds_seconds(verdict.verdict, figures)
            behind[partition] = (*_assessed(verdict, figures), now_ms, until_ms)
            verdicts.append((partition, verdict))
            yield partition
        self.verdicts[group] = group_verdict(verdicts, at_the_end)
        blocked = tuple(p for p, verdict in verdicts if verdict.verdict == "blocked")
        if blocked:
            self.blocked[group] = blocked
        else:
            self.blocked.pop(group, None)
        self._failed.discard(group)
        if seen is not None:
            return
        self._seen.pop(group, None)
        if not any_held and not is_late and ends.layout == layout:
            numbers = [(topic, ends.changed(topic)) for topic in topics]
            if all(number <= samples for _, number in numbers):  # none since this began
                has_lag = bool(verdicts)
                now_known = touched if has_lag else changed
                self._seen[group] = _Seen(now_known, membership, numbers, at_the_end, has_lag)

    def at_rest(
        self,
        group: str,
        commits: CommitTable,
        membership: Membership | None,
        ends: EndOffsetTable,
    ) -> object | None:
        """Return a token that stays the same object while a group's assessment without lag holds.

        Return None for a group that has to be assessed again.
        """
        known = self._unchanged(group, commits, membership, ends)
        return None if known is None or known.has_lag else known

    def _unchanged(
        self,
        group: str,
        commits: CommitTable,
        membership: Membership | None,
        ends: EndOffsetTable,
    ) -> _Seen | None:
        """Return the inputs of a group's assessment while they are the same, else None."""
        known = self._seen.get(group)
        if known is None:
            return None
        number = commits.touched(group) if known.has_lag else commits.changed(group)
        if number == known.changed and known.membership is membership:
            for topic, changed in known.topics:
                if ends.changed(topic) != changed:
                    break
            else:
                return known
        del self._seen[group]
        return None

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

    def behind(self, group: str) -> Iterable[TopicPartition]:
        """Return a group's partitions that have lag."""
        return self._behind.get(group, {}).keys()

    def find(self, group: str, partition: TopicPartition) -> Assessed | None:
        """Return a partition's assessment; None if its group has none."""
        if not self.is_assessed(group):
            return None
        kept = self._behind[group].get(partition)
        if kept is None:
            return AT_THE_END
        found = Assessed._make(kept[:_AT_MS])
        return found._replace(lag_seconds=_age_at(kept, self._looked_ms[group]))

    def column(
        self, field: str, group: str, partitions: Sequence[TopicPartition]
    ) -> list[float | None]:
        """Return one field of ``Assessed`` for each partition; None where it is unknown.

        All are None if the group has no assessment.
        """
        if not self.is_assessed(group):
            return [None] * len(partitions)
        at, known = Assessed._fields.index(field), self._behind[group]
        if not known:
            at_the_end: float | None = getattr(AT_THE_END, field)
            return [at_the_end] * len(partitions)
        if at != _LAG_SECONDS:
            return [known.get(partition, AT_THE_END)[at] for partition in partitions]
        now_ms, there = self._looked_ms[group], known.get
        return [
            AT_THE_END.lag_seconds if (kept := there(one)) is None else _age_at(kept, now_ms)
            for one in partitions
        ]

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


def _assessed(verdict: Verdict, figures: LagFigures) -> Assessed:
    age, rates = figures.age, figures.rates
    return Assessed(
        verdict=verdict.verdict,
        why=verdict.reason,
        lag_seconds=None if age is None else age.seconds,
        error_seconds=None if age is None else age.error_seconds,
        lag_seconds_method=None if age is None else age.method,
        velocity=None if rates is None else rates.velocity,
        eta_seconds=figures.eta_seconds,
    )


class _Found(NamedTuple):
    """The number of a group's committed partitions without lag, and the others.

    ``held``: an open transaction holds back the last stable offset of one. ``reads_uncommitted``:
    the group committed an offset beyond one.
    """

    at_the_end: int
    left: list[TopicPartition]
    held: bool
    reads_uncommitted: bool


def _partitions_with_lag(
    committed: list[CommittedTopic], ends: EndOffsetTable, held_before_ms: int
) -> Generator[object, None, _Found]:
    """Return the partitions that have lag, or whose last stable offset has stood still for long."""
    at_the_end, left = 0, []
    any_held, reads_uncommitted = False, False
    for topic, numbers, offset, commit_ms in committed:
        for start in range(0, len(numbers), _STEP):
            part = slice(start, start + _STEP)
            some = numbers[part]
            of_them = ends.columns.of(ends.rows(topic, some))
            lags = lag_columns(offset[part], commit_ms[part], of_them)
            done = lags.known & (lags.lag == 0) & ~lags.out_of_range
            held = lags.known & (of_them.held_ms != NOT_HELD_MS)
            if held.any():
                any_held = True
                reads_uncommitted = reads_uncommitted or _is_beyond_stable(
                    ends, topic, some[held], offset[part][held], commit_ms[part][held]
                )
                done &= of_them.held_ms > held_before_ms
            at_the_end += int(np.count_nonzero(done))
            some = some[lags.known & ~done]
            left += [TopicPartition(topic, number) for number in some.tolist()]
            yield topic
    return _Found(at_the_end, left, any_held, reads_uncommitted)


def _is_beyond_stable(
    ends: EndOffsetTable, topic: str, numbers: Ints, offset: Ints, commit_ms: Ints
) -> bool:
    """Return whether a group committed beyond a last stable offset that was listed after that."""
    for number, committed, at_ms in zip(
        numbers.tolist(), offset.tolist(), commit_ms.tolist(), strict=True
    ):
        latest = ends.latest(TopicPartition(topic, number))
        if (
            latest is not None
            and latest.last_stable_offset < committed <= latest.end_offset
            and at_ms + CLOCK_ALLOWANCE_MS < latest.as_of_ms
        ):
            return True
    return False


def _partitions_without_commit(
    group: str, owned: Iterable[TopicPartition], commits: CommitTable
) -> Generator[object, None, list[TopicPartition]]:
    """Return the assigned partitions on which a group never committed."""
    found: list[TopicPartition] = []
    assigned = list(owned)
    for start in range(0, len(assigned), _SMALL_STEP):
        has_commit = commits.has_commit(group)
        found += [one for one in assigned[start : start + _SMALL_STEP] if not has_commit(one)]
        yield start
    return found


def _unless_unread(verdict: Verdict, figures: LagFigures, unread_ms: int) -> Verdict:
    """Return the verdict, or ``unknown`` if commits that weren't read yet could change it.

    Until ``UNREAD_ALLOWED_MS``, a verdict stays that would hold at the time of the last read.
    """
    if unread_ms <= UNREAD_MOMENTS_MS or verdict.verdict not in _BY_MISSING_COMMITS:
        return verdict
    unread, held = unread_ms / 1000, verdict.behind_seconds
    if verdict.verdict in ("stopped", "stalled"):
        held = figures.unmoved_seconds
    if verdict.verdict == "stopped" and figures.silent_seconds is not None:
        held = min(held, figures.silent_seconds)
    if unread_ms <= UNREAD_ALLOWED_MS and held - unread > figures.allowed_seconds:
        return verdict
    reason = f"the service has read no commits for {unread:.0f} s, so this may not hold"
    return verdict._replace(verdict="unknown", reason=f"{reason}: {verdict.reason}")
