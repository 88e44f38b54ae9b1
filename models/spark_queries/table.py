"""Every query with a checkpoint, as a group, and the problems with checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from caughtup.models.ids import TopicPartition
from caughtup.models.spark_queries.look import (
    BEGINNING,
    CommittedBatch,
    KnownCheckpoint,
    Look,
    Looks,
    Problem,
)

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
        """What needn't be read again."""
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
