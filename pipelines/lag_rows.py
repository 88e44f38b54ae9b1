"""Commits and end offsets to rows of lag: each change, measured against what was so at the time.

The same fold as ``caughtup.models.lag`` does for the service, in Spark's own expressions, so that
no record passes through Python once more; tests hold both equal. A row is a change that was
observed: a group's commit moved, or the partition's log did. Repetitions are remembered and make
no row.

In which order things happened: records of one log in the log's order, whatever their clocks say,
since the log decides which commit is the last; a log's time never goes back. Between commits and
end offsets the time decides, and at the same time end offsets go first.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.types import IntegerType, LongType, StringType

from caughtup.models.lag import CLOCK_ALLOWANCE_MS
from caughtup.pipelines.tables import GROUP_BUCKET, LAG, columns

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
_ENDS = ("start_offset", "last_stable_offset", "end_offset", "readable_end_offset")
_FROM_STATE = -1
_PARTITION = ("topic", "partition")
_GROUP_PARTITION = ("group", "topic", "partition")
#: Rows of a place are together already, and each window stays within one. ``order`` comes first:
#: sorting by names, which windows do, takes several times as long as sorting by a number.
_PLACED = ("order", "place", GROUP_BUCKET, *_GROUP_PARTITION)


def lag_rows(
    commits: DataFrame,
    ends: DataFrame,
    known_commits: DataFrame,
    known_ends: DataFrame,
    left_commits: DataFrame,
    together: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """Give the rows that a batch makes, of the columns of tables.LAG and the folders' own.

    ``commits`` has group, topic, partition, present, committed, commit_time_ms and log_offset;
    ``ends`` topic, partition, present, what LAST_ENDS has, and log_offset. What was known before
    is of LAST_COMMITS and LAST_ENDS, and so is what ``last_commits`` left. ``together`` brings the
    rows of a bucket together, by a column ``place`` that it adds, so that they needn't be dealt
    out anew to be written.
    """
    looks = _looks(ends, known_ends)
    made = _commits(commits, known_commits, together)
    deleted = commits.where("NOT present")
    readers = left_commits.select(*_GROUP_PARTITION).union(deleted.select(*_GROUP_PARTITION))
    of_groups = readers.distinct().join(looks, list(_PARTITION))
    happened = together(
        of_groups.withColumn("is_commit", F.lit(False)).unionByName(
            made.withColumn("is_commit", F.lit(True)), allowMissingColumns=True
        )
    ).withColumn("order", LAG.order)
    order = Window.partitionBy(*_PLACED).orderBy("at_ms", "is_commit", "log_offset")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    look = F.when(~F.col("is_commit"), F.struct("there", *_ENDS, "as_of_ms", "changed"))
    commit = F.when(F.col("is_commit"), F.struct("present", "committed", "commit_time_ms"))
    seen = happened.select(
        *(*_PLACED[2:], "is_commit", "log_offset", "commit_time_ms", "as_of_ms", "changed"),
        F.last(look, ignorenulls=True).over(so_far).alias("ends"),
        F.last(commit, ignorenulls=True).over(so_far).alias("commit"),
        F.last(commit, ignorenulls=True).over(before).alias("earlier"),
    )
    return _measured(seen.where(_is_change()))


def last_commits(commits: DataFrame, known: DataFrame) -> DataFrame:
    """Give the last commits after a batch: those of LAST_COMMITS before it, and its own."""
    own = commits.select(*_GROUP_PARTITION, "present", "committed", "commit_time_ms", "log_offset")
    return _newest(own.unionByName(_present(known)), _GROUP_PARTITION).select(*LAST_COMMITS.names)


def last_ends(ends: DataFrame, known: DataFrame) -> DataFrame:
    """Give the last looks after a batch: those of LAST_ENDS before it, and its own.

    An older look that comes later, from a slower second service, isn't believed.
    """
    return _newest(_believed(ends, known), _PARTITION).select(*LAST_ENDS.names)


def _newest(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    # One by one: an aggregate of a struct would be sorted for, one of numbers is hashed.
    values = [name for name in rows.columns if name not in (*key, "log_offset")]
    last = [F.max_by(name, "log_offset").alias(name) for name in values]
    return rows.groupBy(*key).agg(*last).where("present")


def _present(known: DataFrame) -> DataFrame:
    return known.withColumn("present", F.lit(True)).withColumn("log_offset", F.lit(_FROM_STATE))


def _commits(
    commits: DataFrame, known: DataFrame, together: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    own = commits.select(*_GROUP_PARTITION, "present", "committed", "commit_time_ms", "log_offset")
    log = Window.partitionBy(*_PLACED).orderBy("log_offset")
    at_ms = F.max(_event_time("commit_time_ms")).over(log)
    both = together(own.unionByName(_present(known))).withColumn("order", LAG.order)
    return both.withColumn("at_ms", at_ms)


def _event_time(name: str) -> Column:
    # What is remembered was so before anything of this batch.
    return F.when(F.col("log_offset") == _FROM_STATE, F.lit(_FROM_STATE)).otherwise(F.col(name))


def _believed(ends: DataFrame, known: DataFrame) -> DataFrame:
    own = ends.select(*_PARTITION, "present", *_ENDS, "as_of_ms", "log_offset")
    log = Window.partitionBy(*_PARTITION).orderBy("log_offset")
    # Tombstones begin anew: a topic was deleted, and its clock may start over.
    life = Window.partitionBy(*_PARTITION, "life").orderBy("log_offset")
    earlier = life.rowsBetween(Window.unboundedPreceding, -1)
    newest = F.max(F.when(F.col("present"), F.col("as_of_ms"))).over(earlier)
    return (
        own.unionByName(_present(known))
        .withColumn("life", F.count_if(~F.col("present")).over(log))
        .withColumn("at_ms", F.max(_event_time("as_of_ms")).over(log))
        .withColumn("newest_ms", newest)
        .where("NOT present OR newest_ms IS NULL OR as_of_ms >= newest_ms")
    )


def _looks(ends: DataFrame, known: DataFrame) -> DataFrame:
    believed = _believed(ends, known)
    life = Window.partitionBy(*_PARTITION, "life").orderBy("log_offset")
    same = F.struct("present", *_ENDS)
    return believed.select(
        *_PARTITION,
        F.col("present").alias("there"),
        *_ENDS,
        "as_of_ms",
        "log_offset",
        "at_ms",
        (~F.lag(same).over(life).eqNullSafe(same)).alias("changed"),
    )


def _is_change() -> Column:
    moved = F.when(
        F.col("commit.present"),
        F.col("earlier").isNull()
        | ~F.col("earlier.present")
        | (F.col("earlier.committed") != F.col("commit.committed")),
    ).otherwise(F.col("earlier.present"))
    grown = F.col("changed") & F.col("commit.present")
    change = F.when(F.col("is_commit"), moved).otherwise(grown)
    return (F.col("log_offset") != _FROM_STATE) & F.col("ends.there") & change


def _measured(rows: DataFrame) -> DataFrame:
    """Lag by the rules of ``caughtup.models.lag.partition_lag``."""
    committed = F.when(F.col("commit.present"), F.col("commit.committed"))
    made_ms = F.when(F.col("commit.present"), F.col("commit.commit_time_ms"))
    start, end = F.col("ends.start_offset"), F.col("ends.end_offset")
    stale = (committed > end) & (made_ms + CLOCK_ALLOWANCE_MS < F.col("ends.as_of_ms"))
    in_log = committed.isNotNull() & ~F.coalesce(stale, F.lit(False)) & (committed >= start)
    position = F.when(in_log, committed).otherwise(start)
    readable = F.coalesce("ends.readable_end_offset", "ends.last_stable_offset")
    time_ms = F.when(F.col("is_commit"), F.col("commit_time_ms")).otherwise(F.col("as_of_ms"))
    as_of_ms = F.greatest(time_ms, F.col("ends.as_of_ms"), F.coalesce(made_ms, F.lit(0)))
    return rows.select(
        F.timestamp_millis(as_of_ms).alias("as_of"),
        *_GROUP_PARTITION,
        committed.alias("committed"),
        committed.isNotNull().alias("has_commit"),
        F.timestamp_millis(made_ms).alias("commit_timestamp"),
        end.alias("end_offset"),
        F.col("ends.last_stable_offset").alias("last_stable_offset"),
        start.alias("start_offset"),
        F.greatest(readable - position, F.lit(0)).alias("lag"),
        F.greatest(end - position, F.lit(0)).alias("lag_committed_view"),
        F.when(F.col("is_commit"), "commit").otherwise("end_offset").alias("source"),
        F.to_date(F.timestamp_millis(as_of_ms)).alias("date"),
        GROUP_BUCKET,
    )
