"""A bucket's commits and lag: from columns with names to the fold's numbers, and back to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from caughtup.pipelines.history.buckets.end_offset_columns import (
    FROM_STATE,
    Believed,
    Ints,
    Looks,
    believed,
    last_looks,
    of_partition,
    starts,
    topic_and_partition,
)
from caughtup.pipelines.history.buckets.files import NewFile, parquet_file, table_files
from caughtup.pipelines.history.buckets.lag_columns import (
    Commits,
    LagColumns,
    lag_columns,
    last_commits,
)
from caughtup.pipelines.history.buckets.names import numbered
from caughtup.pipelines.history.decoding.packs import buckets_of
from caughtup.pipelines.tables import COMMITS, LAG, columns, timestamps

#: The last commit of a group on a partition, and the last look at a partition's log.
LAST_COMMITS = columns(
    group=StringType(),
    topic=StringType(),
    partition=IntegerType(),
    committed=LongType(),
    commit_time_ms=LongType(),
)
LAST_ENDS = columns(
    topic=StringType(),
    partition=IntegerType(),
    start_offset=LongType(),
    last_stable_offset=LongType(),
    end_offset=LongType(),
    readable_end_offset=LongType(),
    as_of_ms=LongType(),
)
#: The folder of what a batch leaves for the next one.
STATE = "state/"
_COMMIT = ("partition", "present", "committed", "commit_time_ms", "log_offset")
_LOOK = ("partition", "present", "start_offset", "last_stable_offset", "end_offset")
_LOOK += ("readable_end_offset", "as_of_ms", "log_offset")


class BucketLag:
    """The commits and looks of a batch, and what was remembered; None where there is nothing."""

    def __init__(
        self,
        commits: pa.Table | None,
        looks: pa.Table | None,
        known_commits: pa.Table | None,
        known_ends: pa.Table | None,
    ) -> None:
        self._rows = commits
        self._known = 0 if known_commits is None else len(known_commits)
        self._looked = looks is not None
        both, seen = [_of(known_commits), commits], [_of(known_ends), looks]
        self._groups = numbered(_names("group", both))
        self._topics = numbered(_names("topic", both) + _names("topic", seen))
        cut = sum(rows is not None for rows in both)
        topic_of_commits, topic_of_looks = self._topics.numbers[:cut], self._topics.numbers[cut:]
        self._found = _believed(_numbers(seen, _LOOK), _one(topic_of_looks))
        self._sort(_numbers(both, _COMMIT), _one(self._groups.numbers), _one(topic_of_commits))

    def _sort(self, columns: Sequence[NDArray[np.int64]], group: Ints, topic: Ints) -> None:
        partition, present, committed, time_ms, log_offset = columns
        place = of_partition(topic, partition)
        self._order = order = np.lexsort((log_offset, place, group))
        group, place = group[order], place[order]
        first = starts(group) | starts(place)
        self._group_of, self._place_of = group[first], place[first]
        self._commits = Commits(
            np.cumsum(first) - 1,
            place,
            present[order].astype(np.bool_),
            committed[order],
            time_ms[order],
            log_offset[order],
        )

    def tables(self, bucket: int) -> Iterator[NewFile]:
        """Return the files of the tables of commits and lag."""
        if self._rows is not None:
            own = self._order[self._order >= self._known] - self._known
            yield from table_files(COMMITS, bucket, _commit_rows(self._rows.take(pa.array(own))))
        if self._rows is not None or self._looked:
            rows = lag_columns(self._commits, self._found)
            if len(rows.reader):
                yield from table_files(LAG, bucket, self._lag_rows(rows))

    def remembered(self, bucket: int) -> Iterator[NewFile]:
        """Return the files of the state for the next batch: of this bucket's groups and topics."""
        if self._rows is not None:
            last = last_commits(self._commits)
            reader = self._commits.reader[last]
            columns = [
                *self._named(reader),
                self._commits.committed[last],
                self._commits.time_ms[last],
            ]
            yield _state("commits", bucket, LAST_COMMITS, columns)
        if self._looked:
            looks = last_looks(self._found)
            topic, _ = topic_and_partition(looks.place)
            own = looks.rows(buckets_of(self._topics.column(topic)) == bucket)
            yield _state("ends", bucket, LAST_ENDS, self._look_columns(own))

    def _named(self, reader: Ints) -> list[pa.Array]:
        group, place = self._group_of[reader], self._place_of[reader]
        return [self._groups.column(group), *self._placed(place)]

    def _placed(self, place: Ints) -> list[pa.Array]:
        topic, partition = topic_and_partition(place)
        return [self._topics.column(topic), pa.array(partition)]

    def _look_columns(self, looks: Looks) -> list[pa.Array]:
        readable = looks.readable_end_offset
        return [
            *self._placed(looks.place),
            looks.start_offset,
            looks.last_stable_offset,
            looks.end_offset,
            pa.array(readable, mask=readable < 0),
            looks.as_of_ms,
        ]

    def _lag_rows(self, rows: LagColumns) -> pa.Table:
        commits, looks = self._commits, self._found.looks
        group, topic, partition = self._named(rows.reader)
        gone = ~commits.present[rows.commit]
        made_ms = pa.array(commits.time_ms[rows.commit], mask=gone)
        sources = pa.array(["end_offset", "commit"])
        return pa.table(
            {
                "as_of": timestamps(pa.array(rows.as_of_ms)),
                "group": group,
                "topic": topic,
                "partition": partition,
                "committed": pa.array(commits.committed[rows.commit], mask=gone),
                "has_commit": ~gone,
                "commit_timestamp": timestamps(made_ms),
                "end_offset": looks.end_offset[rows.look],
                "last_stable_offset": looks.last_stable_offset[rows.look],
                "start_offset": looks.start_offset[rows.look],
                "lag": rows.lag,
                "lag_committed_view": rows.lag_committed_view,
                "source": pa.DictionaryArray.from_arrays(
                    pa.array(rows.by_commit.astype(np.int32)), sources
                ),
            }
        )


def _of(known: pa.Table | None) -> pa.Table | None:
    """Mark what was remembered as what it is: there, and before anything of the batch."""
    if known is None:
        return None
    from_state = pa.array(np.full(len(known), FROM_STATE))
    present = pa.array(np.ones(len(known), np.bool_))
    return known.append_column("present", present).append_column("log_offset", from_state)


def _names(name: str, tables: Sequence[pa.Table | None]) -> list[pa.ChunkedArray]:
    return [table.column(name) for table in tables if table is not None]


def _numbers(tables: Sequence[pa.Table | None], names: Sequence[str]) -> list[Ints]:
    """Return columns of numbers of all tables, -1 where there is none."""
    given = [table for table in tables if table is not None]
    if not given:
        return [np.empty(0, np.int64) for _ in names]
    columns = ([_filled(table.column(name)) for table in given] for name in names)
    return [np.concatenate(parts) for parts in columns]


def _filled(column: pa.ChunkedArray) -> Ints:
    if column.null_count:
        column = pc.fill_null(column, -1)
    return column.to_numpy().astype(np.int64)


def _one(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _believed(columns: Sequence[Ints], topic: Ints) -> Believed:
    partition, present, *rest = columns
    return believed(Looks(of_partition(topic, partition), present.astype(np.bool_), *rest))


def _commit_rows(rows: pa.Table) -> pa.Table:
    for name, ms in (
        ("commit_timestamp", "commit_time_ms"),
        ("expire_timestamp", "expire_time_ms"),
        ("record_timestamp", "record_time_ms"),
    ):
        rows = rows.append_column(name, timestamps(rows.column(ms)))
    return rows


def _state(name: str, bucket: int, shape: StructType, columns: Sequence[object]) -> NewFile:
    table = pa.table(dict(zip(shape.names, columns, strict=True)))
    return NewFile(f"{STATE}{name}-{bucket}", parquet_file(table, ("group", "topic")))
