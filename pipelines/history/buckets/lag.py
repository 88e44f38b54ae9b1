"""Compute a bucket's rows of commits and lag, and its state for the next batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from caughtup.models.commits.table import LastCommits
from caughtup.models.ids import TopicPartition
from caughtup.pipelines.history.buckets.lag_columns import (
    FROM_STATE,
    CommitRows,
    EndOffsetSamples,
    Ints,
    LagRows,
    ValidEndOffsets,
    ends,
    lag_columns,
    last_before,
    last_commits,
    last_end_offsets,
    of_partition,
    topic_and_partition,
    valid_end_offsets,
)
from caughtup.pipelines.history.buckets.order import sort_rows
from caughtup.pipelines.history.buckets.parts import TablePart, parts_by_day
from caughtup.pipelines.history.decoding.batches import buckets_of
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.tables import COMMITS, LAG, columns, timestamps

#: The last commit of a group on a partition, and the last sample of a partition's end offsets.
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
#: The table of the state that a batch leaves for the next one.
STATE = "_state"
#: The most pairs of a place in a log and a partition that are searched for in one step.
_PAIRS = 1 << 20
_COMMIT_FIELDS = ("partition", "present", "committed", "commit_time_ms", "log_offset")
_OTHER_FIELDS = [
    *("leader_epoch", "metadata", "expire_time_ms", "topic_id"),
    *("log_partition", "record_time_ms"),
]
_SAMPLE_FIELDS = (
    *("partition", "present", "start_offset", "last_stable_offset", "end_offset"),
    *("readable_end_offset", "as_of_ms", "log_offset"),
)


class NumberedNames(NamedTuple):
    """Distinct names, sorted, and for each given column an array of the names' numbers."""

    names: pa.StringArray
    numbers: list[Ints]

    def column(self, numbers: Ints) -> pa.DictionaryArray:
        """Return a column of names from their numbers."""
        return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), self.names)


def numbered(columns: Sequence[pa.ChunkedArray]) -> NumberedNames:
    """Number the names in columns of type ``packs.NAMES``, in the order of their bytes."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    if not chunks:
        return NumberedNames(pa.array([], pa.string()), [np.empty(0, np.int64) for _ in columns])
    one = pa.chunked_array(chunks).unify_dictionaries()
    names = one.chunk(0).dictionary
    order = pc.sort_indices(names)
    number = np.empty(len(names), np.int64)
    number[order.to_numpy()] = np.arange(len(names))
    every = number[np.concatenate([chunk.indices.to_numpy() for chunk in one.chunks])]
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return NumberedNames(names.take(order), np.split(every, cuts))


class BucketLag:
    """A bucket's commits and end offsets of a batch, with the state before it; None if empty."""

    def __init__(
        self,
        commits: pa.Table | None,
        samples: pa.Table | None,
        known_commits: pa.Table | None,
        known_ends: pa.Table | None,
    ) -> None:
        self._rows = commits
        self._known = 0 if known_commits is None else len(known_commits)
        self._has_samples = samples is not None
        both, seen = [_of(known_commits), commits], [_of(known_ends), samples]
        self._groups = numbered(_names("group", both))
        self._topics = numbered(_names("topic", both) + _names("topic", seen))
        cut = sum(rows is not None for rows in both)
        topic_of_commits, topic_of_samples = self._topics.numbers[:cut], self._topics.numbers[cut:]
        self._end_offsets = _valid_end_offsets(
            _numbers(seen, _SAMPLE_FIELDS), _one(topic_of_samples)
        )
        self._sort(
            _numbers(both, _COMMIT_FIELDS), _one(self._groups.numbers), _one(topic_of_commits)
        )

    def _sort(self, columns: Sequence[NDArray[np.int64]], group: Ints, topic: Ints) -> None:
        partition, present, committed, time_ms, log_offset = columns
        order, first = sort_rows((group, topic, partition), log_offset)
        self._order, place = order, of_partition(topic, partition)[order]
        self._group_of, self._place_of = group[order[first]], place[first]
        self._commits = CommitRows(
            np.cumsum(first) - 1,
            place,
            present[order].astype(np.bool_),
            committed[order],
            time_ms[order],
            log_offset[order],
        )

    def tables(self, bucket: int) -> Iterator[TablePart]:
        """Yield the rows of the tables of commits and lag."""
        if self._rows is not None:
            rows, own = self._rows, np.flatnonzero(self._order >= self._known)
            times = self._commits.time_ms[own]
            yield from parts_by_day(
                COMMITS, bucket, times, lambda chosen: self._commit_rows(rows, own[chosen])
            )
        if self._rows is not None or self._has_samples:
            lag = lag_columns(self._commits, self._end_offsets)
            yield from parts_by_day(
                LAG, bucket, lag.as_of_ms, lambda chosen: self._lag_rows(lag.rows(chosen))
            )

    def remembered(self, bucket: int, buckets: int, *, rebucket: bool) -> Iterator[TablePart]:
        """Yield the changed state of this bucket's groups and topics, for the next batch.

        ``rebucket``: yield all state, since the number of buckets has changed.
        """
        if self._rows is not None or rebucket:
            last = last_commits(self._commits)
            reader = self._commits.reader[last]
            columns = [
                *self._named(reader),
                self._commits.committed[last],
                self._commits.time_ms[last],
            ]
            yield _state("commits", bucket, buckets, LAST_COMMITS, columns)
        if self._has_samples or rebucket:
            samples = last_end_offsets(self._end_offsets)
            topic, _ = topic_and_partition(samples.place)
            own = samples.rows(buckets_of(self._topics.column(topic), buckets) == bucket)
            yield _state("ends", bucket, buckets, LAST_ENDS, self._sample_columns(own))

    @cached_property
    def _number_of(self) -> dict[str, int]:
        """Each group's number, by name."""
        return {name: number for number, name in enumerate(self._groups.names.to_pylist())}

    def commits_before(self, group: str, log_offsets: Sequence[int]) -> dict[int, LastCommits]:
        """Return a group's last commits before places in its log, by place."""
        if not log_offsets:
            return {}
        at = self._number_of.get(group)
        begin, end = (
            (0, 0) if at is None else np.searchsorted(self._group_of, [at, at + 1]).tolist()
        )
        first, last = np.searchsorted(self._commits.reader, [begin, end])
        reader, log_offset = (
            one[first:last] for one in (self._commits.reader, self._commits.log_offset)
        )
        readers = np.arange(begin, end)
        topics, numbers = topic_and_partition(self._place_of[begin:end])
        names = [self._topics.names[topic].as_py() for topic in topics.tolist()]
        partitions = list(map(TopicPartition, names, numbers.tolist()))
        found = {}
        some = max(1, _PAIRS // max(1, len(readers)))
        for places in (log_offsets[at : at + some] for at in range(0, len(log_offsets), some)):
            wanted, until = np.tile(readers, len(places)), np.repeat(places, len(readers))
            rows = first + last_before(reader, log_offset, wanted, until, side="left")
            for place, row in zip(places, np.split(rows, len(places)), strict=True):
                known = np.flatnonzero((row >= first) & self._commits.present[row])
                row = row[known]
                found[place] = LastCommits(
                    [partitions[one] for one in known.tolist()],
                    self._commits.committed[row].tolist(),
                    self._commits.time_ms[row].tolist(),
                )
        return found

    def partition_counts(self) -> dict[str, int]:
        """Return each topic's number of partitions with a sample of end offsets."""
        topics, _ = topic_and_partition(last_end_offsets(self._end_offsets).place)
        numbers, counts = np.unique(topics, return_counts=True)
        names = self._topics.names.take(pa.array(numbers)).to_pylist()
        return dict(zip(names, counts.tolist(), strict=True))

    def first_partitions(self) -> dict[str, bool]:
        """Return the topics with a sample of partition 0, and whether it was there in the last one."""
        samples = self._end_offsets.samples
        topics, partition = topic_and_partition(samples.place)
        rows = np.flatnonzero(ends(samples.place) & (partition == 0))
        names = self._topics.names.take(pa.array(topics[rows])).to_pylist()
        return dict(zip(names, samples.present[rows].tolist(), strict=True))

    def _named(self, reader: Ints) -> list[pa.Array]:
        group, place = self._group_of[reader], self._place_of[reader]
        return [self._groups.column(group), *self._placed(place)]

    def _placed(self, place: Ints) -> list[pa.Array]:
        topic, partition = topic_and_partition(place)
        return [self._topics.column(topic), pa.array(partition)]

    def _sample_columns(self, samples: EndOffsetSamples) -> list[pa.Array]:
        readable = samples.readable_end_offset
        return [
            *self._placed(samples.place),
            samples.start_offset,
            samples.last_stable_offset,
            samples.end_offset,
            pa.array(readable, mask=readable < 0),
            samples.as_of_ms,
        ]

    def _commit_rows(self, rows: pa.Table, chosen: Ints) -> pa.Table:
        sorted_rows = self._commits.rows(chosen)
        group, topic, partition = self._named(sorted_rows.reader)
        order = self._order[chosen] - self._known
        others = rows.select(_OTHER_FIELDS).take(pa.array(order))
        return pa.table(
            {
                "commit_timestamp": timestamps(pa.array(sorted_rows.time_ms)),
                "group": group,
                "topic": topic,
                "partition": partition,
                "present": sorted_rows.present,
                "committed": pa.array(sorted_rows.committed, mask=~sorted_rows.present),
                "leader_epoch": others.column("leader_epoch"),
                "metadata": others.column("metadata"),
                "expire_timestamp": timestamps(others.column("expire_time_ms")),
                "topic_id": others.column("topic_id"),
                "record_timestamp": timestamps(others.column("record_time_ms")),
                "log_partition": others.column("log_partition"),
                "log_offset": sorted_rows.log_offset,
            }
        )

    def _lag_rows(self, rows: LagRows) -> pa.Table:
        commits, samples = self._commits, self._end_offsets.samples
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
                "end_offset": samples.end_offset[rows.sample],
                "last_stable_offset": samples.last_stable_offset[rows.sample],
                "start_offset": samples.start_offset[rows.sample],
                "lag": rows.lag,
                "lag_committed_view": rows.lag_committed_view,
                "source": pa.DictionaryArray.from_arrays(
                    pa.array(rows.by_commit.astype(np.int32)), sources
                ),
            }
        )


def _of(known: pa.Table | None) -> pa.Table | None:
    """Mark rows of the state as present, and as earlier than all rows of the batch."""
    if known is None:
        return None
    from_state = pa.array(np.full(len(known), FROM_STATE))
    present = pa.array(np.ones(len(known), np.bool_))
    return known.append_column("present", present).append_column("log_offset", from_state)


def _names(name: str, tables: Sequence[pa.Table | None]) -> list[pa.ChunkedArray]:
    return [table.column(name) for table in tables if table is not None]


def _numbers(tables: Sequence[pa.Table | None], names: Sequence[str]) -> list[Ints]:
    """Return columns of all tables concatenated, as int64, -1 for null."""
    given = [table for table in tables if table is not None]
    if not given:
        return [np.empty(0, np.int64) for _ in names]
    columns = ([_filled(table.column(name)) for table in given] for name in names)
    return [np.concatenate(parts) for parts in columns]


def _filled(column: pa.ChunkedArray) -> Ints:
    if column.null_count:
        column = pc.fill_null(column, -1)
    filled: Ints = column.to_numpy().astype(np.int64)
    return filled


def _one(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _valid_end_offsets(columns: Sequence[Ints], topic: Ints) -> ValidEndOffsets:
    partition, present, *rest = columns
    return valid_end_offsets(
        EndOffsetSamples(of_partition(topic, partition), present.astype(np.bool_), *rest)
    )


def _state(
    kind: str, bucket: int, buckets: int, schema: StructType, columns: Sequence[object]
) -> TablePart:
    table = pa.table(dict(zip(schema.names, columns, strict=True)), schema=arrow_schema(schema))
    return TablePart(STATE, state_folder(kind, bucket, buckets), table, ("group", "topic"))


def state_folder(kind: str, bucket: int, buckets: int) -> str:
    """Return the folder of a bucket's state; ``buckets``: the number of all buckets."""
    return f"kind={kind}/bucket={bucket}/buckets={buckets}"
