"""Spark Structured Streaming queries, by their checkpoints.

A batch is committed once ``commits`` has a file with its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

from caughtup.models.clocks import is_from_the_future
from caughtup.models.ids import TopicPartition

#: The URI schemes of stores that are read by pyarrow, which is in the extra ``spark``.
ARROW_SCHEMES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")


class Entry(NamedTuple):
    """A checkpoint, or a folder of them.

    ``name`` is the name of its queries, None for the folder's.
    """

    name: str | None
    uri: str

    @property
    def scheme(self) -> str:
        """The URI's scheme; ``file`` for a path."""
        return "file" if self.uri.startswith("/") else self.uri.partition(":")[0]

    @property
    def place(self) -> str:
        """The URI without its options for pyarrow; the paths of checkpoints begin with it."""
        return self.uri if self.scheme == "file" else self.uri.partition("?")[0].rstrip("/")

    @property
    def is_s3(self) -> bool:
        """Whether it is in an S3 store."""
        return self.scheme in ("s3", "s3a")

    @property
    def local_path(self) -> str:
        """The path of ``file:///path``, ``file:/path`` or ``/path``, as Hadoop reads them."""
        path = self.uri.removeprefix("file:")
        if path.startswith("//"):
            path = path[2:][path[2:].find("/") :]
        return path.rstrip("/") or "/"


def read_entry(text: str) -> Entry:
    """Read an entry. Raises ValueError, whose message has no password in it."""
    name, equals, uri = text.partition("=")
    if not equals or "/" in name or ":" in name:
        name, uri = "", text
    elif not name.strip():
        raise ValueError("has no name before its =")
    entry = Entry(name.strip() or None, uri.strip())
    if not entry.uri.startswith("/") and not entry.uri.partition(":")[2].startswith("/"):
        raise ValueError("is not [NAME=]URI, nor [NAME=]/FOLDER")
    if entry.scheme not in ("file", *ARROW_SCHEMES):
        known = ", ".join(ARROW_SCHEMES)
        raise ValueError(f"is of {entry.scheme}:, which can't be read; file: and {known}: can")
    if urlsplit(entry.uri).password is not None:
        raise ValueError("has a password in it, which would be shown")
    return entry


#: The prefix of the group name of a query.
GROUP_PREFIX = "spark:"
#: The batch number of the query's start, before its first batch.
BEGINNING = -1
#: The batches of the first look, enough to show the query's interval and rates at once.
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


#: The partitions that are applied in one step: some milliseconds' work.
_STEP = 500
#: Of a query with more partitions, only the last batch of a look is applied.
_LARGE = 2_000
#: Problems that mean that the checkpoint is gone.
GONE = ("not_found", "name_taken")


class QueryCommits(NamedTuple):
    """A query's commits at a time (ms); None for a partition that it doesn't read any more."""

    offsets: Mapping[TopicPartition, int | None]
    at_ms: int


@dataclass(slots=True)
class SparkQuery:
    """A query: its checkpoint, the last look at it, and the time of that look (ms).

    ``committed_ms`` is the time of the last batch's commit.
    """

    checkpoint: str
    last: Look
    looked_ms: int
    committed_ms: int | None = None
    partitions: set[TopicPartition] = field(default_factory=set)

    @property
    def batch(self) -> int | None:
        """The last batch that was committed; None while there is none."""
        return None if self.last.newest == BEGINNING else self.last.newest

    @property
    def batch_ms(self) -> int | None:
        """When that was committed."""
        return None if self.batch is None else self.committed_ms

    @property
    def known(self) -> KnownCheckpoint:
        """What need not be read again."""
        return KnownCheckpoint(self.last.query_id, self.last.newest)


class SparkQueries:
    """Queries by their group, and problems by checkpoint."""

    def __init__(self) -> None:
        self.queries: dict[str, SparkQuery] = {}
        self.problems: dict[str, Problem] = {}

    def known(self) -> dict[str, KnownCheckpoint]:
        """Return what is known of each query, by its group."""
        return {group: query.known for group, query in self.queries.items()}

    def commits(
        self,
        group: str,
        checkpoint: str,
        look: Look,
        watched: Callable[[str], bool],
        now_ms: int,
    ) -> Iterator[QueryCommits]:
        """Yield the commits of a query since the last look at its checkpoint, in order.

        ``watched`` returns whether a topic is watched. If the checkpoint went back, because it was
        created again or edited by hand, its last batch is committed again now: the query goes on
        from there.
        """
        before = self.queries.get(group)
        batches = look.batches
        if before is None or before.checkpoint != checkpoint:
            after = SparkQuery(checkpoint, look, now_ms)
            after.partitions = set() if before is None else before.partitions
        else:
            after = before
            if _went_back(before.known, look):
                batches = tuple(one._replace(at_ms=now_ms) for one in batches[-1:])
        self.queries[group] = after
        if batches and len(batches[-1].offsets) > _LARGE:
            batches = batches[-1:]
        yield from _in_steps(after, batches, watched, now_ms, gone=look.newest is None)
        if batches:
            after.committed_ms = batches[-1].at_ms
        after.last, after.looked_ms = look._replace(batches=()), now_ms

    def gone(self, looks: Looks) -> list[str]:
        """Return the groups whose checkpoints are gone by these looks, sorted.

        A checkpoint that is unreadable, or in an unreadable folder, may still exist.
        """
        unread = [path for path, of in looks.problems.items() if of.reason not in GONE]
        return [
            group
            for group, query in sorted(self.queries.items())
            if group not in looks.queries
            and not any(_is_at(query.checkpoint, path) for path in unread)
        ]

    def forget(self, group: str) -> None:
        """Remove a query."""
        self.queries.pop(group, None)


def _is_at(checkpoint: str, path: str) -> bool:
    """Return whether a checkpoint is at a path, or below it."""
    return checkpoint == path or checkpoint.startswith(f"{path.rstrip('/')}/")


def _went_back(known: KnownCheckpoint, look: Look) -> bool:
    if look.query_id != known.query_id:
        return True
    return known.newest is not None and (look.newest is None or look.newest < known.newest)


def _in_steps(
    query: SparkQuery,
    batches: tuple[CommittedBatch, ...],
    watched: Callable[[str], bool],
    now_ms: int,
    *,
    gone: bool,
) -> Iterator[QueryCommits]:
    for batch in batches:
        offsets = ((one, offset) for one, offset in batch.offsets.items() if watched(one.topic))
        while some := dict(islice(offsets, _STEP)):
            query.partitions.update(some)
            yield QueryCommits(some, batch.at_ms)
    if batches or gone:
        left = query.partitions - (batches[-1].offsets.keys() if batches else set())
        if left:
            query.partitions -= left
            yield QueryCommits(dict.fromkeys(sorted(left)), now_ms)
