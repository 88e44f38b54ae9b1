"""Lines of groups in Prometheus' format with gaps for names and figures, and how these are filled."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from caughtup.agents.web.metrics.granularity import Detail, Figures
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import Ints, Rows

#: The gaps. No text has these bytes: UTF-8 doesn't.
_NAME, _VALUE = b"\xff", b"\xfe"


class LabelNames(NamedTuple):
    """What the labels of a group, a topic and a partition are called."""

    group: str = "group"
    topic: str = "topic"
    partition: str = "partition"


NAMES = LabelNames()


class Written(NamedTuple):
    """A group's lines, of so many partitions each.

    Where a line is of several partitions, ``keys`` is the line of each of them (int64), and all
    lines are one text of so many (``line_count``). ``is_limited``: it is told of less finely than others.
    """

    lines: list[bytes]
    keys: Ints | None
    line_count: int
    is_limited: bool


def write_lines(
    group: str,
    partitions: Sequence[TopicPartition],
    detail: Detail,
    size: int,
    names: LabelNames = NAMES,
) -> Written:
    """Write the lines of a group on these partitions, as finely as it is told of.

    ``size``: partitions of which the lines are one text.
    """
    granularity = detail.of(partitions)
    is_limited = granularity != detail.granularity
    if granularity == "partition":
        starts = range(0, len(partitions), size)
        lines = [_lines(group, partitions[start : start + size], names) for start in starts]
        return Written(lines, None, len(partitions), is_limited)
    before = f'{names.group}="{escaped(group)}"'
    if granularity == "group":
        labels = [before] if partitions else []
        return Written([_open(labels)], np.zeros(len(partitions), np.int64), 1, is_limited)
    numbers: dict[str, int] = {}
    keys = [numbers.setdefault(topic, len(numbers)) for topic, _ in partitions]
    labels = [f'{before},{names.topic}="{escaped(topic)}"' for topic in numbers]
    return Written([_open(labels)], np.array(keys, np.int64), len(numbers), is_limited)


def _lines(group: str, partitions: Sequence[TopicPartition], names: LabelNames) -> bytes:
    """Write a line for each partition."""
    before = f'{names.group}="{escaped(group)}",{names.topic}="'
    after = {topic: f'{before}{escaped(topic)}",{names.partition}="' for topic, _ in partitions}
    return _open([f'{after[topic]}{number}"' for topic, number in partitions])


def _open(labels: Sequence[str]) -> bytes:
    """Write a line for each of these labels, its gaps open, and its text proof against ``%``."""
    if not labels:
        return b""
    text = "\n".join([f"{each}}} " for each in labels])
    closed = text.encode().replace(b"%", b"%%").replace(b"\n", _VALUE + b"\n" + _NAME)
    return _NAME + closed + _VALUE + b"\n"


def filled(
    lines: bytes, name: bytes, form: bytes, values: Figures, known: Rows | None = None
) -> bytes:
    """Fill the gaps of lines: ``name`` before the labels, and each value in a form such as ``%d``.

    ``name`` ends where the label ``group`` begins. Where a value isn't ``known`` its line is taken
    away; None: all are.
    """
    if known is not None and not known.all():
        left = compress(lines.split(b"\n"), known.tolist())
        lines, values = b"".join([line + b"\n" for line in left]), values[known]
    text = lines.replace(_NAME, name.replace(b"%", b"%%")).replace(_VALUE, form)
    return text % tuple(values.tolist())


def escaped(value: str) -> str:
    """Write a label's value so that nothing in it is taken for syntax."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return value
