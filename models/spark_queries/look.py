"""The contents of a checkpoint: its committed batches, and the offsets at which the last ones end.

A batch is committed once ``commits`` has a file with its number. A batch that only ``offsets`` has
is in flight: after a restart Spark repeats it, so that its records have yet to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from caughtup.models.clocks import is_from_the_future
from caughtup.models.ids import TopicPartition

#: The prefix of the group name of a query.
GROUP_PREFIX = "spark:"
#: The batch number of the query's start, before its first batch.
BEGINNING = -1
#: The batches that the first look reads, which show the query's interval and rates at once.
FIRST_BATCHES = 8


class KnownCheckpoint(NamedTuple):
    """What is known of a checkpoint: its query, and the last committed batch."""

    query_id: str
    newest: int | None


class CommittedBatch(NamedTuple):
    """A committed batch: the next offsets after it, and the time of the commit (ms)."""

    number: int
    offsets: Mapping[TopicPartition, int]
    at_ms: int


class Look(NamedTuple):
    """The contents of a checkpoint.

    ``newest`` is the last committed batch, BEGINNING before the first one, None if unknown;
    ``batches`` are the new ones, ascending. ``started`` is the batch in flight, and ``started_ms``
    the time at which it began.
    """

    query_id: str
    newest: int | None
    batches: tuple[CommittedBatch, ...] = ()
    started: int | None = None
    started_ms: int | None = None


class Problem(NamedTuple):
    """Why a checkpoint, or a folder of them, is unreadable: a code, and a line of text."""

    reason: str
    message: str


class Looks(NamedTuple):
    """The checkpoints at one time: each query's checkpoint and look, and problems by path."""

    queries: dict[str, tuple[str, Look]]
    problems: dict[str, Problem]


def batch_numbers(names: Iterable[str]) -> set[int]:
    """Return the numbers of the batches among a log's file names; other files are ignored."""
    return {int(name) for name in names if name.isascii() and name.isdecimal() and len(name) <= 18}


def last_committed(offsets: AbstractSet[int], commits: AbstractSet[int]) -> int | None:
    """Return the last committed batch whose end is known; None without one."""
    return max(offsets & commits, default=None)


def batches_to_read(
    offsets: AbstractSet[int], commits: AbstractSet[int], since: int | None
) -> list[int]:
    """Return the batches to read, ascending: the last FIRST_BATCHES of those after ``since``."""
    found = sorted(offsets & commits)[-FIRST_BATCHES:]
    return [number for number in found if since is None or number > since]


def commit_ms(begun_ms: int | None, written_ms: int | None, now_ms: int) -> int:
    """Return the time of a batch's commit (ms): when its file was written, if that is plausible.

    It is not before the batch began, nor in the future; if neither time is known, it is now.
    """
    times = [at for at in (begun_ms, written_ms) if at and not is_from_the_future(at, now_ms)]
    return min(max(times, default=now_ms), now_ms)
