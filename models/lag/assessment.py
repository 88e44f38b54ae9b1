"""How every group fares, worked out a partition at a time and kept until the next time.

The figures rest on histories, which takes longer than a scrape may; so a scrape, the page and the
commands read what was last worked out. Of a partition that is at its end there is nothing to
keep: its lag in seconds is 0.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from caughtup.models.commits.group_commits import CommittedTopic
from caughtup.models.commits.table import CommitTable
from caughtup.models.errors import error_code
from caughtup.models.groups.membership import Membership
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.figures import MAX_POLL_INTERVAL_MS, LagFigures, lag_figures
from caughtup.models.lag.lag_columns import lag_columns
from caughtup.models.lag.verdict import (
    NOTHING_TO_READ,
    GroupVerdict,
    Verdict,
    group_verdict,
    partition_verdict,
)

#: Commits are always read some moments late. A reader that is later takes those that were made
#: since for missing, and after so long (ms) nobody is blamed for that any more.
UNREAD_MOMENTS_MS = 2_000
UNREAD_ALLOWED_MS = 30_000
#: The verdicts that rest on commits that didn't come, or came slowly.
_FOR_WANT_OF_COMMITS = frozenset({"slow", "diverging", "stalled", "stopped"})
#: Partitions that are looked at in one step: about a millisecond's work.
_STEP = 20_000
_FEW = 1_000


class Assessed(NamedTuple):
    """What was worked out of a group's partition; None = unknown.

    ``lag_seconds``: age of the oldest unread record, ``error_seconds`` how wrong it can be, and
    ``method``: ``caught_up``, ``interpolated`` or ``at_least``. ``velocity``: records a second by
    which the lag grows. ``eta_seconds``: until it is caught up, inf = never.
    """

    verdict: str
    reason: str
    lag_seconds: float | None
    error_seconds: float | None
    method: str | None
    velocity: float | None
    eta_seconds: float | None


AT_THE_END = Assessed(*NOTHING_TO_READ[:2], 0.0, 0.0, "caught_up", None, 0.0)


class _AtRest(NamedTuple):
    """What a group was assessed by that has nothing to read: it fares the same until one changes.

    ``changed`` is ``CommitTable.changed`` of the group, and ``topics`` has
    ``EndOffsetTable.changed`` of each topic that it reads.
    """

    changed: int
    membership: Membership | None
    topics: list[tuple[str, int]]


class Assessments:
    """The last assessment of each group: its verdict, and its partitions that aren't at the end.

    Of one that has nothing to read no figure depends on the time; so it isn't worked out again
    until a commit, a member or a sample of a log's end comes.
    """

    def __init__(self) -> None:
        self.verdicts: dict[str, GroupVerdict] = {}
        # Each an Assessed without its class, in a table that stays the same: plain tuples of
        # plain values, and what is older than its last freezing, are nothing that the garbage
        # collector history through again and again.
        self._behind: dict[str, dict[TopicPartition, tuple[Any, ...]]] = {}
        self._failed: set[str] = set()
        self._at_rest: dict[str, _AtRest] = {}
        #: Since when (ms) a group has been to read partitions on which it never committed.
        self.uncommitted: dict[str, dict[TopicPartition, int]] = {}

    def assess(
        self,
        group: str,
        commits: CommitTable,
        membership: Membership | None,
        ends: EndOffsetTable,
        now_ms: int,
        read_ms: int | None = None,
    ) -> Iterator[object]:
        """Assess one group anew, a step at a time: many partitions at their end, or one that isn't.

        ``read_ms`` is when the log of commits was last read to its end, None for just now: long
        after that, nobody is said not to commit. The caller may let others have their turn
        between two; what they change meanwhile counts or doesn't. The group's verdict comes when
        all are done.
        """
        if self.at_rest(group, commits, membership, ends) is not None:
            return
        unread_ms = 0 if read_ms is None else now_ms - read_ms
        owners = {} if membership is None else membership.owners
        allowed_ms = (membership and membership.rebalance_timeout_ms) or MAX_POLL_INTERVAL_MS
        committed = commits.columns_of(group)
        changed, samples, layout = commits.changed(group), ends.samples, ends.layout
        behind = self._behind.setdefault(group, {})
        at_the_end, left = yield from _without_those_at_the_end(committed, ends)
        uncommitted = yield from _without_a_commit(group, owners, commits)
        before = self.uncommitted.get(group, {})
        since = {partition: before.get(partition, now_ms) for partition in uncommitted}
        if since:
            self.uncommitted[group] = since
        else:
            self.uncommitted.pop(group, None)
        left += uncommitted
        longest_ms, is_known = None, False
        for partition in behind.keys() - set(left):
            del behind[partition]
        verdicts: list[tuple[TopicPartition, Verdict]] = []
        for partition in left:
            history = ends.history(partition)
            if history is None:
                behind.pop(partition, None)
                continue
            known = commits.find(group, partition)
            if not is_known and (known is None or known.interval_ms is None):
                longest_ms, is_known = (yield from commits.interval_steps(group)), True
            assigned_ms = since.get(partition, 0)
            figures = lag_figures(known, history, now_ms, longest_ms, allowed_ms, assigned_ms)
            verdict = _unless_unread(partition_verdict(figures), figures, unread_ms)
            age, rates = figures.age, figures.rates
            assessed = Assessed(
                verdict=verdict.verdict,
                reason=verdict.reason,
                lag_seconds=None if age is None else age.seconds,
                error_seconds=None if age is None else age.error_seconds,
                method=None if age is None else age.method,
                velocity=None if rates is None else rates.velocity,
                eta_seconds=figures.eta_seconds,
            )
            behind[partition] = tuple(assessed)
            verdicts.append((partition, verdict))
            yield partition
        self.verdicts[group] = group_verdict(verdicts, at_the_end)
        self._failed.discard(group)
        self._at_rest.pop(group, None)
        if not verdicts and ends.layout == layout:
            topics = {*(of.topic for of in committed), *(one.topic for one in owners)}
            seen = [(topic, ends.changed(topic)) for topic in topics]
            if all(number <= samples for _, number in seen):  # none since this began
                self._at_rest[group] = _AtRest(changed, membership, seen)

    def at_rest(
        self,
        group: str,
        commits: CommitTable,
        membership: Membership | None,
        ends: EndOffsetTable,
    ) -> object | None:
        """Return what a group that has nothing to read was assessed by, if that is still so.

        The same object as long as it is; None for a group that is to be assessed again.
        """
        known = self._at_rest.get(group)
        if known is None:
            return None
        changed, members, topics = known
        if changed == commits.changed(group) and members is membership:
            for topic, number in topics:
                if ends.changed(topic) != number:
                    break
            else:
                return known
        del self._at_rest[group]
        return None

    def fail(self, group: str, error: Exception) -> None:
        """Record that a group can't be assessed: it is unknown until it can again."""
        reason = f"the service could not compute it: {error_code(error)}"
        self.verdicts[group] = GroupVerdict("unknown", None, reason)
        self._failed.add(group)
        self._at_rest.pop(group, None)

    def is_assessed(self, group: str) -> bool:
        """Return whether a group was assessed, and could be."""
        return group in self.verdicts and group not in self._failed

    def behind(self, group: str) -> Iterable[TopicPartition]:
        """Name a group's partitions that aren't at their end."""
        return self._behind.get(group, {}).keys()

    def find(self, group: str, partition: TopicPartition) -> Assessed | None:
        """Return a partition's assessment; None if its group has none, or not yet."""
        if not self.is_assessed(group):
            return None
        kept = self._behind[group].get(partition)
        return AT_THE_END if kept is None else Assessed._make(kept)

    def column(
        self, field: str, group: str, partitions: Sequence[TopicPartition]
    ) -> list[float | None]:
        """Return a figure of ``Assessed`` of many partitions, None where it isn't known.

        Of none of them if the group wasn't assessed yet, or couldn't be.
        """
        if not self.is_assessed(group):
            return [None] * len(partitions)
        at, known = Assessed._fields.index(field), self._behind[group]
        if not known:
            at_the_end: float | None = getattr(AT_THE_END, field)
            return [at_the_end] * len(partitions)
        return [known.get(partition, AT_THE_END)[at] for partition in partitions]

    def keep_only(self, groups: set[str]) -> None:
        """Forget the groups that are gone."""
        for group in (self._behind.keys() | self.verdicts.keys()) - groups:
            self._behind.pop(group, None)
            self.uncommitted.pop(group, None)
            self.verdicts.pop(group, None)
            self._at_rest.pop(group, None)
            self._failed.discard(group)


def _without_those_at_the_end(
    committed: list[CommittedTopic], ends: EndOffsetTable
) -> Generator[object, None, tuple[int, list[TopicPartition]]]:
    """Count a group's partitions that are at their end, and list the others that have a commit."""
    at_the_end, left = 0, []
    for topic, numbers, offset, commit_ms in committed:
        for start in range(0, len(numbers), _STEP):
            part = slice(start, start + _STEP)
            some = numbers[part]
            of_them = ends.columns.of(ends.rows(topic, some))
            lags = lag_columns(offset[part], commit_ms[part], of_them)
            done = lags.known & (lags.lag == 0) & ~lags.out_of_range
            at_the_end += int(np.count_nonzero(done))
            some = some[lags.known & ~done]
            left += [TopicPartition(topic, number) for number in some.tolist()]
            yield topic
    return at_the_end, left


def _without_a_commit(
    group: str, owned: Iterable[TopicPartition], commits: CommitTable
) -> Generator[object, None, list[TopicPartition]]:
    """List those of a group's partitions on which it never committed."""
    found: list[TopicPartition] = []
    waiting = list(owned)
    for start in range(0, len(waiting), _FEW):
        has_commit = commits.has_commit(group)
        found += [one for one in waiting[start : start + _FEW] if not has_commit(one)]
        yield start
    return found


def _unless_unread(verdict: Verdict, figures: LagFigures, unread_ms: int) -> Verdict:
    """Replace a verdict that rests on commits which may only not have been read yet.

    One that would hold without the time since the last reading stands for a while.
    """
    if unread_ms <= UNREAD_MOMENTS_MS or verdict.verdict not in _FOR_WANT_OF_COMMITS:
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
