"""A cache of the lines of groups' partitions, so that a scrape only fills in figures.

The labels of a million lines take longer to write than their figures. Cached are templates of a
group's lines, with placeholders for name and figure: a line for each partition, for each topic or
for the group, by its granularity.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np

from caughtup.agents.watching_settings import Granularity
from caughtup.agents.web.metrics.group_lines import (
    NAMES,
    Detail,
    LabelNames,
    LineTemplates,
    line_templates,
)
from caughtup.models.groups.membership import Membership
from caughtup.models.histories.end_columns import Ends
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import Ints
from caughtup.models.polls.commit_columns import NO_OFFSET
from caughtup.models.state.cluster import ClusterState

#: Partitions of a group whose lines are filled in at once: less than a millisecond's work.
SLICE = 500
#: The cost of looking up a group, in partitions.
_OF_A_GROUP = 4
_NO_ROWS = np.zeros(0, np.int64)


class GroupLines(NamedTuple):
    """A group's partitions, those with a commit first, and the rows of their figures.

    ``rows`` are the rows of its commits, ``ends`` those of all its partitions' end offsets (int64).
    It is valid while ``laid``, ``membership`` and ``ends_laid`` are the state's: the numbers of its
    layouts of the commits and of the ends.
    """

    group: str
    partitions: list[TopicPartition]
    rows: Ints
    ends: Ints
    written: LineTemplates
    committed: list[tuple[str, Ints]]
    laid: int
    membership: Membership | None
    ends_laid: int


class Slice(NamedTuple):
    """Partitions of some groups, with their commits and end offsets, and their lines.

    ``groups`` are the groups, each with its partitions in this slice. If a line stands for several
    partitions, ``keys`` has the line of each partition (int64), of ``line_count``. A large group
    has several slices, with ``first`` and ``last`` marking its ends. ``offset`` is the committed
    offset, NO_OFFSET without a commit, ``commit_ms`` its time (ms since the epoch); both int64.
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
    """Caches the lines of each group until its committed or assigned partitions change."""

    def __init__(self, detail: Detail | None = None, names: LabelNames = NAMES) -> None:
        self.detail = detail or Detail()
        self._names = names
        self._variants: dict[tuple[Detail, LabelNames], GroupLabels] = {}
        self._known: dict[str, GroupLines] = {}

    def variant(self, granularity: Granularity | None, names: LabelNames) -> GroupLabels:
        """Return the cache of the same groups with other label names, or another granularity.

        None is this cache's granularity. The two caches forget groups together.
        """
        detail = self.detail if granularity is None else Detail(granularity)
        if (detail, names) == (self.detail, self._names):
            return self
        key = detail, names
        if key not in self._variants:
            self._variants[key] = GroupLabels(*key)
        return self._variants[key]

    def limited(self) -> int:
        """Return the number of groups whose series the limit made coarser at the last scrape."""
        return sum(known.written.is_limited for known in self._known.values())

    def slices(
        self,
        state: ClusterState,
        groups: Iterable[str],
        isolated: Callable[[str], AbstractContextManager[object]],
    ) -> Iterator[Slice]:
        """Yield the partitions of groups as they are now, several small groups in a slice.

        A group that fails, within ``isolated``, is left out. The state may change after each slice.
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
            if gathered and (size + count > SLICE or not _may_share_slice(gathered[0], known)):
                yield _slice_of(state, gathered)
                gathered, size, known = [], 0, None
                with isolated(group):
                    known = self.of(state, group)  # the state may have changed
                if known is None:
                    continue
                count = len(known.partitions)
            gathered.append(known)
            size += count + _OF_A_GROUP
            if count > SLICE:
                yield from _split(_slice_of(state, gathered), known)
                gathered, size = [], 0
        if gathered:
            yield _slice_of(state, gathered)

    def of(self, state: ClusterState, group: str) -> GroupLines:
        """Return a group's partitions and lines as they are now."""
        laid, ends_laid = state.commits.layout(group), state.ends.layout
        membership = state.groups.membership(group)
        known = self._known.get(group)
        if (
            known is None
            or known.laid != laid
            or known.ends_laid != ends_laid
            or known.membership is not membership
        ):
            known = _group_lines(state, group, membership, known, self.detail, self._names)
            self._known[group] = known
        return known

    def __len__(self) -> int:
        return len(self._known)

    def keep_only(self, groups: Collection[str]) -> None:
        """Forget all other groups."""
        for group in self._known.keys() - set(groups):
            del self._known[group]
        for variant in self._variants.values():
            variant.keep_only(groups)


def _may_share_slice(one: GroupLines, other: GroupLines) -> bool:
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
    """Return a group's partitions, with the lines of ``before`` if the partitions are the same."""
    laid, ends_laid = state.commits.layout(group), state.ends.layout
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
        written = line_templates(group, partitions, detail, SLICE, names)
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
        laid,
        membership,
        ends_laid,
    )


def _same(some: list[tuple[str, Ints]], others: list[tuple[str, Ints]]) -> bool:
    return len(some) == len(others) and all(
        one[0] == other[0] and np.array_equal(one[1], other[1])
        for one, other in zip(some, others, strict=True)
    )


def _slice_of(state: ClusterState, groups: list[GroupLines]) -> Slice:
    """Return one slice of groups whose rows are valid now."""
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
    """Return the line of each partition within the groups' joined lines, and the number of lines."""
    keys, count = [], 0
    for of in groups:
        of_group = of.written
        if of_group.keys is None:
            return None, 0
        keys.append(of_group.keys + count)
        count += of_group.line_count
    return np.concatenate(keys), count


def _split(whole: Slice, of: GroupLines) -> Iterator[Slice]:
    """Yield a large group's slice in parts, all as of the same moment."""
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
