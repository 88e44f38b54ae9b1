"""The labels of groups' partitions, written once and kept, so that a scrape only fills in figures.

A million lines with four labels each take longer to write than the figures in them. What is kept
of a group is the text of its lines with two gaps in each, before the labels and behind them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import compress
from typing import NamedTuple

from caughtup.models.groups.membership import Membership
from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState

#: Partitions of a group whose lines are filled in in one go: less than a millisecond's work.
SLICE = 500
#: The gaps. No text has these bytes: UTF-8 doesn't.
_NAME, _VALUE = b"\xff", b"\xfe"


class Slice(NamedTuple):
    """Some partitions of a group and their lines.

    ``offsets`` are what it committed on each, and ``times_ms`` when (ms since the epoch); None
    where it has no commit.
    """

    group: str
    partitions: Sequence[TopicPartition]
    offsets: Sequence[int | None]
    times_ms: Sequence[int | None]
    lines: bytes


class _Labels(NamedTuple):
    """A group's lines, and whose they are: they are good as long as that is so."""

    committed: list[TopicPartition]
    membership: Membership | None
    partitions: list[TopicPartition]
    lines: list[bytes]


class GroupLabels:
    """Keeps the lines of each group until it commits on, or is given, other partitions."""

    def __init__(self) -> None:
        self._known: dict[str, _Labels] = {}

    def slices(self, state: ClusterState, group: str) -> Iterator[Slice]:
        """Yield a group's partitions as they are now: those with a commit, then those without."""
        committed, offsets, times_ms = state.commits.last(group)
        labels = self._of(group, committed, state.groups.membership(group))
        without = [None] * (len(labels.partitions) - len(committed))
        columns = (labels.partitions, [*offsets, *without], [*times_ms, *without])
        if len(labels.lines) == 1:
            yield Slice(group, *columns, labels.lines[0])
            return
        for number, lines in enumerate(labels.lines):
            part = slice(number * SLICE, (number + 1) * SLICE)
            yield Slice(group, *(column[part] for column in columns), lines)

    def _of(
        self, group: str, committed: list[TopicPartition], membership: Membership | None
    ) -> _Labels:
        known = self._known.get(group)
        if (
            known is not None
            and known.membership is membership
            and known.committed == committed  # the same objects, mostly: that is quick
        ):
            return known
        partitions = committed
        if membership is not None and not membership.owners.keys() <= set(committed):
            there = set(committed)
            partitions = committed + [p for p in membership.owners if p not in there]
        lines = [
            _lines(group, partitions[start : start + SLICE])
            for start in range(0, len(partitions), SLICE)
        ]
        known = self._known[group] = _Labels(committed, membership, partitions, lines)
        return known

    def __len__(self) -> int:
        return len(self._known)

    def keep_only(self, groups: Collection[str]) -> None:
        """Forget the groups that are gone."""
        for group in self._known.keys() - set(groups):
            del self._known[group]


def _lines(group: str, partitions: Sequence[TopicPartition]) -> bytes:
    """Write a line for each partition, its gaps open, and its text proof against ``%``."""
    before = f'group="{escaped(group)}",topic="'
    after = {topic: f'{before}{escaped(topic)}",partition="' for topic, _ in partitions}
    labels = "\n".join([f'{after[topic]}{number}"}} ' for topic, number in partitions])
    closed = labels.encode().replace(b"%", b"%%").replace(b"\n", _VALUE + b"\n" + _NAME)
    return _NAME + closed + _VALUE + b"\n"


def filled(lines: bytes, name: bytes, form: bytes, values: Sequence[float | None]) -> bytes:
    """Fill the gaps of lines: ``name`` before the labels, and each value in a form such as ``%d``.

    ``name`` ends where the label ``group`` begins. A value of None takes its line away.
    """
    text = lines.replace(_NAME, name.replace(b"%", b"%%")).replace(_VALUE, form)
    try:
        return text % tuple(values)
    except TypeError:  # quicker than looking for a None each time
        known = [value is not None for value in values]
        left = b"".join([line + b"\n" for line in compress(text.split(b"\n"), known)])
        return left % tuple(compress(values, known))


def escaped(value: str) -> str:
    """Write a label's value so that nothing in it is taken for syntax."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return value
