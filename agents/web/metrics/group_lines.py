"""The lines of groups: their granularity (partition, topic or group), folded figures, templates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.agents.watching_settings import Granularity
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import LONG_MAX
from caughtup.models.polls.column_reader import Ints, Rows

#: Integers or floats.
Figures = NDArray[Any]

#: Sums of offsets are kept in two halves of this many bits, so that none overflows.
_LOW_BITS = 32
_LOW = (1 << _LOW_BITS) - 1


class Detail(NamedTuple):
    """The granularity of groups' series; ``limit`` is the most series of a group in a metric."""

    granularity: Granularity = "partition"
    limit: int | None = None

    def of(self, partitions: Sequence[TopicPartition]) -> Granularity:
        """Return the granularity of a group with these partitions."""
        found = self.granularity
        if self.limit is None:
            return found
        if found == "partition" and len(partitions) > self.limit:
            found = "topic"
        if found == "topic" and len({topic for topic, _ in partitions}) > self.limit:
            found = "group"
        return found


class Fold(NamedTuple):
    """How the figures of several partitions are reduced to one: the ufunc, and its start.

    Partitions without a figure don't count, as in PromQL's ``sum by`` and ``max by``.
    """

    ufunc: np.ufunc
    first: float


SUM = Fold(np.add, 0)
MOST = Fold(np.maximum, -np.inf)
EVERY = Fold(np.minimum, 1)


class Totals:
    """Folded figures by key, accumulated over slices of partitions."""

    def __init__(self, count: int, fold: Fold) -> None:
        self._fold = fold
        self._known = np.zeros(count, np.bool_)
        self._figures: Figures | None = None
        #: The upper bits of sums of offsets.
        self._high: Ints = np.zeros(count, np.int64)

    def add(self, keys: Ints, values: Figures, known: Rows | None) -> None:
        """Add figures under their keys, those that are known; None means all."""
        if known is not None:
            keys, values = keys[known], values[known]
        self._known[keys] = True
        ufunc, first = self._fold
        if self._figures is None:
            if first == -np.inf and values.dtype.kind == "i":
                first = np.iinfo(values.dtype).min
            self._figures = np.full(len(self._known), first, values.dtype)
        if ufunc is np.add and values.dtype == np.int64:
            np.add.at(self._high, keys, values >> _LOW_BITS)
            values = values & _LOW
        ufunc.at(self._figures, keys, values)

    def figures(self) -> tuple[Figures, Rows]:
        """Return the figure of each key, and whether it has one; sums are capped at Long.MAX_VALUE."""
        if self._figures is None:
            return np.zeros(len(self._known)), self._known
        if not self._high.any():
            return self._figures, self._known
        high = self._high + (self._figures >> _LOW_BITS)
        sums = (high << _LOW_BITS) + (self._figures & _LOW)
        return np.where(high > LONG_MAX >> _LOW_BITS, LONG_MAX, sums), self._known


#: The placeholders: bytes that don't occur in UTF-8.
_NAME, _VALUE = b"\xff", b"\xfe"


class LabelNames(NamedTuple):
    """The names of the labels of group, topic and partition."""

    group: str = "group"
    topic: str = "topic"
    partition: str = "partition"


NAMES = LabelNames()


class LineTemplates(NamedTuple):
    """The templates of a group's lines, each text of ``lines`` for a slice of its partitions.

    If a line stands for several partitions, ``keys`` has the line of each partition (int64), and
    all ``line_count`` lines are one text. ``is_limited`` is whether the limit made it coarser.
    """

    lines: list[bytes]
    keys: Ints | None
    line_count: int
    is_limited: bool


def line_templates(
    group: str,
    partitions: Sequence[TopicPartition],
    detail: Detail,
    size: int,
    names: LabelNames = NAMES,
) -> LineTemplates:
    """Return the templates of a group's lines, at its granularity.

    ``size`` is the number of partitions in one text.
    """
    granularity = detail.of(partitions)
    is_limited = granularity != detail.granularity
    if granularity == "partition":
        starts = range(0, len(partitions), size)
        lines = [_lines(group, partitions[start : start + size], names) for start in starts]
        return LineTemplates(lines, None, len(partitions), is_limited)
    before = f'{names.group}="{escaped(group)}"'
    if granularity == "group":
        labels = [before] if partitions else []
        return LineTemplates(
            [_templates(labels)], np.zeros(len(partitions), np.int64), 1, is_limited
        )
    numbers: dict[str, int] = {}
    keys = [numbers.setdefault(topic, len(numbers)) for topic, _ in partitions]
    labels = [f'{before},{names.topic}="{escaped(topic)}"' for topic in numbers]
    return LineTemplates([_templates(labels)], np.array(keys, np.int64), len(numbers), is_limited)


def _lines(group: str, partitions: Sequence[TopicPartition], names: LabelNames) -> bytes:
    """Return the template of a line for each partition."""
    before = f'{names.group}="{escaped(group)}",{names.topic}="'
    after = {topic: f'{before}{escaped(topic)}",{names.partition}="' for topic, _ in partitions}
    return _templates([f'{after[topic]}{number}"' for topic, number in partitions])


def _templates(labels: Sequence[str]) -> bytes:
    """Return the template of a line for each of these labels, with ``%`` escaped."""
    if not labels:
        return b""
    text = "\n".join([f"{each}}} " for each in labels])
    closed = text.encode().replace(b"%", b"%%").replace(b"\n", _VALUE + b"\n" + _NAME)
    return _NAME + closed + _VALUE + b"\n"


def fill(
    lines: bytes, name: bytes, form: bytes, values: Figures, known: Rows | None = None
) -> bytes:
    """Return lines with ``name`` before the labels and each value in a format such as ``%d``.

    ``name`` includes all labels before the group's. Lines whose value isn't ``known`` are omitted;
    None means all are known.
    """
    if known is not None and not known.all():
        left = compress(lines.split(b"\n"), known.tolist())
        lines, values = b"".join([line + b"\n" for line in left]), values[known]
    text = lines.replace(_NAME, name.replace(b"%", b"%%")).replace(_VALUE, form)
    return text % tuple(values.tolist())


def escaped(value: str) -> str:
    """Return a label's value, escaped."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return value
