"""The labels of groups' partitions, written once and kept, so that a scrape only fills in figures.

A million lines with four labels each take longer to write than the figures in them. What is kept
of a group is the text of its lines with two gaps in each, before the labels and behind them. One
that is told of by topic, or as a whole, has a line for each of its topics, or one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np

from caughtup.agents.watching_settings import Granularity
from caughtup.agents.web.metrics.granularity import Detail
from caughtup.agents.web.metrics.group_lines import NAMES, LabelNames, Written, write_lines
from caughtup.models.groups.membership import Membership
from caughtup.models.histories.end_columns import Ends
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import Ints
from caughtup.models.polls.commit_columns import NO_OFFSET
from caughtup.models.state.cluster import ClusterState

#: Partitions of a group whose lines are filled in in one go: less than a millisecond's work.
SLICE = 500
#: What finding one more group counts as, in partitions.
_OF_A_GROUP = 4
_NO_ROWS = np.zeros(0, np.int64)


class GroupLines(NamedTuple):
    """A group's partitions, those with a commit first, and where figures of them are.

    ``rows`` are those of its commits, as many as there are, and ``ends`` those of all partitions'
    end offsets (int64). It is good as long as the rest says: what is known of the group's commits,
    its members and the end offsets' rows.
    """

    group: str
    partitions: list[TopicPartition]
    rows: Ints
    ends: Ints
    written: Written
    committed: list[tuple[str, Ints]]
    changed: int
    membership: Membership | None
    layout: int


class Slice(NamedTuple):
    """Partitions of some groups, with what is known of them now, and their lines.

    ``groups`` are the groups with those of their partitions that are in it. Where lines are of
    several partitions each, ``keys`` is the line of each partition (int64) out of ``line_count``; of a
    large group those come in several slices, the ``first`` and the ``last`` of which say so.

    ``offset`` is what a group committed, NO_OFFSET where it has no commit, and ``commit_ms`` when
    (ms since the epoch); both int64.
    """

    groups: list[tuple[str, Sequence[TopicPartition]]]
    offset: Ints
    commit_ms: Ints
    ends: Ends
    lines: bytes
    keys: Ints | None = None
    line_count: int = 0
    first: bool = True
    last: bool = True


class GroupLabels:
    """Keeps the lines of each group until it commits on, or is given, other partitions."""

    def __init__(self, detail: Detail | None = None, names: LabelNames = NAMES) -> None:
        self.detail = detail or Detail()
        self._names = names
        self._beside: dict[tuple[Detail, LabelNames], GroupLabels] = {}
        self._known: dict[str, GroupLines] = {}

    def beside(self, granularity: Granularity | None, names: LabelNames) -> GroupLabels:
        """Return what keeps the same groups' lines as finely as this, or by something else.

        With labels of these names. It is kept, too, and forgets with this one.
        """
        detail = self.detail if granularity is None else Detail(granularity)
        if (detail, names) == (self.detail, self._names):
            return self
        key = detail, names
        if key not in self._beside:
            self._beside[key] = GroupLabels(*key)
        return self._beside[key]

    def limited(self) -> int:
        """Count the groups that were told of less finely than others at the last scrape."""
        return sum(known.written.is_limited for known in self._known.values())

    def slices(
        self,
        state: ClusterState,
        groups: Iterable[str],
        isolated: Callable[[str], AbstractContextManager[object]],
    ) -> Iterator[Slice]:
        """Yield the partitions of groups as they are now, those of small groups together.

        What fails within ``isolated`` of a group costs that group alone. The caller may let others
        have their turn after each slice.
        """
        gathered: list[GroupLines] = []
        size = 0
        for group in groups:
            known = None
            with isolated(group):
                known = self.of(state, group)
            if known is None:
                continue
            count = len(known.partitions)
            if gathered and (size + count > SLICE or not _alike(gathered[0], known)):
                yield _joined(state, gathered)
                gathered, size, known = [], 0, None
                with isolated(group):
                    known = self.of(state, group)  # others may have had their turn
                if known is None:
                    continue
                count = len(known.partitions)
            gathered.append(known)
            size += count + _OF_A_GROUP
            if count > SLICE:
                yield from _in_parts(_joined(state, gathered), known)
                gathered, size = [], 0
        if gathered:
            yield _joined(state, gathered)

    def of(self, state: ClusterState, group: str) -> GroupLines:
        """Return a group's partitions and lines as they are now."""
        changed, layout = state.commits.changed(group), state.ends.layout
        membership = state.groups.membership(group)
        known = self._known.get(group)
        if (
            known is None
            or known.changed != changed
            or known.layout != layout
            or known.membership is not membership
        ):
            known = _group_lines(state, group, membership, known, self.detail, self._names)
            self._known[group] = known
        return known

    def __len__(self) -> int:
        return len(self._known)

    def keep_only(self, groups: Collection[str]) -> None:
        """Forget the groups that are gone."""
        for group in self._known.keys() - set(groups):
            del self._known[group]
        for beside in self._beside.values():
            beside.keep_only(groups)


def _alike(one: GroupLines, other: GroupLines) -> bool:
    """Return whether two groups may share a slice."""
    return (one.written.keys is None) == (other.written.keys is None)


def _group_lines(
    state: ClusterState,
    group: str,
    membership: Membership | None,
    before: GroupLines | None,
    detail: Detail,
    names: LabelNames,
) -> GroupLines:
    """Find a group's partitions, with the lines that it had before if they are the same ones."""
    changed, layout = state.commits.changed(group), state.ends.layout
    found = state.commits.rows_of(group)
    committed = [(topic, numbers) for topic, numbers, _ in found]
    if (
        before is not None
        and before.membership is membership
        and _same(before.committed, committed)
    ):
        partitions, written = before.partitions, before.written
    else:
        partitions = [one for of in committed for one in state.commits.named(*of)]
        if membership is not None:
            there = set(partitions)
            partitions += [one for one in membership.owners if one not in there]
        written = write_lines(group, partitions, detail, SLICE, names)
    rows = [of_topic for _, _, of_topic in found]
    count = sum(map(len, rows))
    ends = [state.ends.rows(*of) for of in committed]
    ends += [state.ends.rows(topic, np.array([n])) for topic, n in partitions[count:]]
    return GroupLines(
        group,
        partitions,
        np.concatenate(rows) if rows else _NO_ROWS,
        np.concatenate(ends) if ends else _NO_ROWS,
        written,
        committed,
        changed,
        membership,
        layout,
    )


def _same(some: list[tuple[str, Ints]], others: list[tuple[str, Ints]]) -> bool:
    return len(some) == len(others) and all(
        one[0] == other[0] and np.array_equal(one[1], other[1])
        for one, other in zip(some, others, strict=True)
    )


def _joined(state: ClusterState, groups: list[GroupLines]) -> Slice:
    """Gather what is known now of groups whose rows are good now."""
    commits = state.commits.columns
    offset = np.full(sum(len(of.partitions) for of in groups), NO_OFFSET)
    commit_ms = np.zeros_like(offset)
    start = 0
    for of in groups:
        committed = slice(start, start + len(of.rows))
        offset[committed], commit_ms[committed] = (
            commits.offset[of.rows],
            commits.commit_ms[of.rows],
        )
        start += len(of.partitions)
    keys, count = _joined_keys(groups)
    return Slice(
        [(of.group, of.partitions) for of in groups],
        offset,
        commit_ms,
        state.ends.columns.of(np.concatenate([of.ends for of in groups])),
        b"".join([lines for of in groups for lines in of.written.lines]),
        keys,
        count,
    )


def _joined_keys(groups: list[GroupLines]) -> tuple[Ints | None, int]:
    """Return the line of each partition among those of all these groups, and how many there are."""
    keys, count = [], 0
    for of in groups:
        of_group = of.written
        if of_group.keys is None:
            return None, 0
        keys.append(of_group.keys + count)
        count += of_group.line_count
    return np.concatenate(keys), count


def _in_parts(whole: Slice, of: GroupLines) -> Iterator[Slice]:
    """Yield a large group's partitions, some at a time, as they all were at first."""
    lines, keys, count, _ = of.written
    for number, start in enumerate(range(0, len(of.partitions), SLICE)):
        part = slice(start, start + SLICE)
        yield Slice(
            [(of.group, of.partitions[part])],
            whole.offset[part],
            whole.commit_ms[part],
            whole.ends.part(part),
            lines[number if keys is None else 0],
            None if keys is None else keys[part],
            count,
            number == 0,
            start + SLICE >= len(of.partitions),
        )
