"""What a look at a checkpoint tells: which batches are committed, and where the last ones end.

A batch is committed once ``commits`` has a file by its number. One that only ``offsets`` has is
in flight: after a restart Spark does it again, so that its records are yet to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from caughtup.models.clocks import is_from_the_future
from caughtup.models.ids import TopicPartition

#: What the group of a query is called, before its name.
GROUP_PREFIX = "spark:"
#: The number that stands for where a query began, before its first batch.
BEGINNING = -1
#: Batches that the first look takes: they tell the query's rhythm and its rates at once.
FIRST_BATCHES = 8


class Known(NamedTuple):
    """What was seen of a checkpoint last: its query, and the last batch that was committed."""

    query_id: str
    newest: int | None


class Batch(NamedTuple):
    """A batch that was committed: where it ends (the next offsets), and when that was (ms)."""

    number: int
    offsets: Mapping[TopicPartition, int]
    at_ms: int


class Look(NamedTuple):
    """What a checkpoint holds.

    ``newest`` is the last batch that was committed, BEGINNING before the first one, None where
    nothing is known; ``batches`` those that are news, ascending, the newest last. ``started`` is
    the batch in flight, and ``started_ms`` when it began.
    """

    query_id: str
    newest: int | None
    batches: tuple[Batch, ...] = ()
    started: int | None = None
    started_ms: int | None = None


class Problem(NamedTuple):
    """Why a checkpoint, or a folder of them, can't be read: a code, and a line."""

    reason: str
    message: str


class Looks(NamedTuple):
    """What was found at one moment: each query's checkpoint and look, by group; problems, by path."""

    queries: dict[str, tuple[str, Look]]
    problems: dict[str, Problem]


def numbered(names: Iterable[str]) -> set[int]:
    """Return the batches that a log has files of; what else lies there is nobody's."""
    return {int(name) for name in names if name.isascii() and name.isdecimal() and len(name) <= 18}


def committed(offsets: AbstractSet[int], commits: AbstractSet[int]) -> int | None:
    """Return the last batch that is committed and whose end is known; None without one."""
    return max(offsets & commits, default=None)


def news(offsets: AbstractSet[int], commits: AbstractSet[int], since: int | None) -> list[int]:
    """Return the batches to be read, ascending: those after ``since``, and the last ones only."""
    found = sorted(offsets & commits)[-FIRST_BATCHES:]
    return [number for number in found if since is None or number > since]


def commit_ms(begun_ms: int | None, written_ms: int | None, now_ms: int) -> int:
    """Return when a batch was committed: when its file was written, if that may be so.

    Not before it began, nor in the future; where neither is known, now.
    """
    times = [at for at in (begun_ms, written_ms) if at and not is_from_the_future(at, now_ms)]
    return min(max(times, default=now_ms), now_ms)
