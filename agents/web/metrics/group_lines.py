"""Templates of groups' lines in Prometheus' format, and how names and figures are filled in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from caughtup.agents.web.metrics.granularity import Detail, Figures
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import Ints, Rows

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
