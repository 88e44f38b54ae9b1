"""Compute lag rows from a partition's commits and end offsets in order.

A row is an observed change: a group's commit moved, or the partition's log grew. Repeated commits
and end offsets are remembered, but make no row.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from caughtup.models.lag.partition_lag import partition_lag
from caughtup.models.offsets import EndOffsets
from caughtup.pipelines.schema import bucket
from tests.support.pipelines.partition_events import COMMIT, END_OFFSET, Event


class Commit(NamedTuple):
    """A group's last commit on a partition: its offset and time (ms)."""

    offset: int
    time_ms: int


class LagRow(NamedTuple):
    """One row of the history, times in ms since the epoch.

    ``as_of_ms`` is the later of the commit's time and the end offsets'. ``committed`` and
    ``commit_time_ms`` are None after the commit was deleted.
    """

    as_of_ms: int
    group: str
    topic: str
    partition: int
    committed: int | None
    has_commit: bool
    commit_time_ms: int | None
    end_offset: int
    last_stable_offset: int
    start_offset: int
    lag: int
    lag_committed_view: int
    source: str
    group_bucket: int


@dataclass(slots=True)
class PartitionState:
    """What is known of a partition: its last end offsets, and each group's last commit."""

    topic: str
    partition: int
    ends: EndOffsets | None = None
    commits: dict[str, Commit] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing is known, so that nothing has to be kept."""
        return self.ends is None and not self.commits

    def observe(self, events: Iterable[Event]) -> Iterator[LagRow]:
        """Apply a partition's decoded records, in any order; return the resulting rows.

        Commits before the first end offsets are kept, and make rows once those are known. A deleted
        commit makes a last row without a commit.
        """
        for event in in_order(events):
            if event.kind == END_OFFSET:
                yield from self._end_offsets(event)
            else:
                yield from self._commit(event)

    def _end_offsets(self, event: Event) -> Iterator[LagRow]:
        if not event.present:
            self.ends = None
            return
        seen = EndOffsets(
            event.start_offset,
            event.last_stable_offset,
            event.end_offset,
            event.time_ms,
            event.readable_end_offset,
        )
        before = self.ends
        if before is not None and seen.as_of_ms < before.as_of_ms:
            return  # a slower second service's older sample
        self.ends = seen
        if before is None or not seen.repeats(before):
            for group in sorted(self.commits):
                yield self._row(group, self.commits[group], seen, seen.as_of_ms, END_OFFSET)

    def _commit(self, event: Event) -> Iterator[LagRow]:
        before = self.commits.get(event.group)
        if event.present:
            commit = Commit(event.committed, event.time_ms)
            self.commits[event.group] = commit
            changed = before is None or before.offset != commit.offset
        else:
            commit = None
            self.commits.pop(event.group, None)
            changed = before is not None
        if changed and self.ends is not None:
            yield self._row(event.group, commit, self.ends, event.time_ms, COMMIT)

    def _row(
        self, group: str, commit: Commit | None, ends: EndOffsets, time_ms: int, source: str
    ) -> LagRow:
        committed = commit_time_ms = None
        if commit is not None:
            committed, commit_time_ms = commit
        lag = partition_lag(committed, ends, commit_time_ms)
        return LagRow(
            as_of_ms=max(time_ms, ends.as_of_ms, commit_time_ms or 0),
            group=group,
            topic=self.topic,
            partition=self.partition,
            committed=committed,
            has_commit=lag.has_commit,
            commit_time_ms=commit_time_ms,
            end_offset=ends.end_offset,
            last_stable_offset=ends.last_stable_offset,
            start_offset=ends.start_offset,
            lag=lag.lag,
            lag_committed_view=lag.lag_committed_view,
            source=source,
            group_bucket=bucket(group),
        )


def in_order(events: Iterable[Event]) -> Iterator[Event]:
    """Return decoded records in the order of events.

    Records of one log stay in its order, whatever their timestamps: the log decides which commit is
    the last. Between logs the time decides; at equal times end offsets come first.
    """
    by_log = attrgetter("kind", "log_partition")
    ordered = sorted(events, key=attrgetter("kind", "log_partition", "log_offset"))
    logs = [_never_earlier(list(log)) for _, log in groupby(ordered, key=by_log)]
    for _, _, _, _, event in heapq.merge(*logs):
        yield event


def _never_earlier(log: Sequence[Event]) -> Iterator[tuple[int, bool, int, int, Event]]:
    latest = 0
    for event in log:
        latest = max(latest, event.time_ms)
        yield latest, event.kind != END_OFFSET, event.log_partition, event.log_offset, event
