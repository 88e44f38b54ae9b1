"""Identifiers: tasks, processes, topic-partitions. Ordered as Kafka orders them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from caughtup.models.errors import CaughtupError

#: The greatest accepted number of a partition or a subtopology: nine digits.
NUMBER_MAX = 999_999_999

_TASK_ID = re.compile(r"([0-9]{1,9})_([0-9]{1,9})")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SIGN = 1 << 63
#: A number in a name, unless it is part of a hash, as in names of pods.
_NUMBER = re.compile(r"(?<![0-9])([0-9]{1,9})(?![0-9A-Za-z])")


class TaskId(NamedTuple):
    """A task: subtopology and partition, written ``0_3``.

    Ordered by subtopology, then partition.
    """

    subtopology: int
    partition: int

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Read ``0_3``. Raises CaughtupError ``bad_task_id`` on anything else."""
        match = _TASK_ID.fullmatch(text)
        if match is None:
            raise CaughtupError("bad_task_id", f"{text!r} is not a task id such as 0_3")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


class ProcessId(NamedTuple):
    """A Streams process: a UUID as its two signed 64-bit halves.

    The halves are signed because ``java.util.UUID.compareTo`` compares them so, and Kafka's
    assignors iterate over their clients in that order.
    """

    most: int
    least: int

    @classmethod
    def parse(cls, text: str) -> ProcessId:
        """Read a UUID's text form. Raises CaughtupError ``bad_process_id`` on anything else."""
        if _UUID.fullmatch(text.lower()) is None:
            raise CaughtupError("bad_process_id", f"{text!r} is not a UUID")
        return cls.of(int(text.replace("-", ""), 16))

    @classmethod
    def of(cls, number: int) -> ProcessId:
        """Return the id with the UUID's unsigned 128-bit number."""
        return cls(_signed(number >> 64), _signed(number & (_SIGN * 2 - 1)))

    def __str__(self) -> str:
        digits = f"{self.most % (_SIGN * 2):016x}{self.least % (_SIGN * 2):016x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class TopicPartition(NamedTuple):
    """A partition of a topic, written ``orders-3``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ConnectorTaskId(NamedTuple):
    """A task of a Connect connector, written ``orders-sink-0``."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"


def natural_order(name: str) -> list[tuple[str, int]]:
    """Return a sort key for names by the numbers in them: ``orders-2`` before ``orders-10``."""
    parts = _NUMBER.split(name)
    numbers = [*map(int, parts[1::2]), -1]
    return list(zip(parts[::2], numbers, strict=True))


def partition_counts(partitions: Iterable[TopicPartition]) -> dict[str, int]:
    """Return how many partitions each of these topics has at least: one more than the greatest number."""
    counts: dict[str, int] = {}
    for topic, number in partitions:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    return counts


def _signed(half: int) -> int:
    return half - _SIGN * 2 if half >= _SIGN else half


class CopyKey(NamedTuple):
    """A copy of a task: the process, as the application writes its id, and the task."""

    process: str
    task: TaskId
