"""The Spark side of the history: records to events, events to rows, rows in the table's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from caughtup.models.lag import EndOffsets
from caughtup.pipelines import schema
from caughtup.pipelines.events import ERROR, Event, Record, decode_events
from caughtup.pipelines.lag_state import Commit, LagRow, PartitionState


def lag_history(records: DataFrame) -> DataFrame:
    """Give the rows of the table, schema.LAG_HISTORY, that a stream of records makes.

    The metrics ``commits``, ``end_offsets``, ``quarantined`` and ``sample`` are observed as
    ``decoded`` on the way.
    """
    events = records.mapInArrow(_decode, schema.EVENT).observe(
        "decoded",
        F.count_if(F.col("kind") == "commit").alias("commits"),
        F.count_if(F.col("kind") == "end_offset").alias("end_offsets"),
        F.count_if(F.col("kind") == ERROR).alias("quarantined"),
        F.min(F.nullif(F.col("error"), F.lit(""))).alias("sample"),
    )
    # Not transformWithStateInPandas: that needs protobuf and RocksDB, its first trigger takes
    # three times as long, and each look at the state is a round trip to the JVM. Here the state
    # of a topic-partition comes with its records and goes back in one piece.
    rows = (
        events.where(F.col("kind") != ERROR)
        .groupBy("topic", "partition")
        .applyInPandasWithState(
            _observe, schema.LAG_ROW, schema.STATE, "append", GroupStateTimeout.NoTimeout
        )
    )
    return (
        rows.withColumn("as_of", F.timestamp_millis("as_of_ms"))
        .withColumn("commit_timestamp", F.timestamp_millis("commit_time_ms"))
        .withColumn("date", F.to_date("as_of"))
        .select(*schema.LAG_HISTORY)
        # One task for a bucket makes one file of it, in which a group's rows lie together.
        .repartition(schema.GROUP_BUCKETS, "group_bucket")
        .sortWithinPartitions("date", "group_bucket", "group", "topic", "partition", "as_of")
    )


def _decode(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    arrow_schema = to_arrow_schema(schema.EVENT)
    for batch in batches:
        records = map(Record._make, zip(*(column.to_pylist() for column in batch), strict=True))
        columns = list(zip(*decode_events(records), strict=True))
        if columns:
            arrays = [
                pyarrow.array(values, field.type)
                for values, field in zip(columns, arrow_schema, strict=True)
            ]
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=arrow_schema)


def _observe(
    key: tuple[str, int], chunks: Iterable[pandas.DataFrame], state: GroupState
) -> Iterator[pandas.DataFrame]:
    known = _restore(key, state)
    events = [
        Event._make(values)
        for chunk in chunks
        for values in zip(*(chunk[name].tolist() for name in Event._fields), strict=True)
    ]
    rows = list(known.observe(events))
    if not known.empty:
        state.update(_saved(known))
    elif state.exists:
        state.remove()
    if rows:
        # As objects: pandas would make floats of a column of whole numbers that lacks one.
        yield pandas.DataFrame(rows, columns=LagRow._fields, dtype=object)


def _restore(key: tuple[str, int], state: GroupState) -> PartitionState:
    known = PartitionState(*key)
    if state.exists:
        has_ends, *ends, groups, committed, times = state.get
        if has_ends:
            known.ends = EndOffsets(*ends)
        commits = map(Commit, committed, times)
        known.commits.update(zip(groups, commits, strict=True))
    return known


def _saved(known: PartitionState) -> tuple[object, ...]:
    ends = known.ends or EndOffsets(0, 0, 0, 0)
    groups = sorted(known.commits)
    return (
        known.ends is not None,
        ends.start_offset,
        ends.last_stable_offset,
        ends.end_offset,
        ends.as_of_ms,
        groups,
        [known.commits[group].offset for group in groups],
        [known.commits[group].time_ms for group in groups],
    )
