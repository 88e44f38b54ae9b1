"""Replay on Spark: decide every recorded generation of every group under every setting."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import pyarrow
import pyarrow.compute as pc
from deltalake import DeltaTable
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)

from caughtup.models.errors import CaughtupError
from caughtup.models.replay.outcome import ReplayRow
from caughtup.models.replay.settings import ReplaySetting
from caughtup.pipelines.delta.files import read_rows
from caughtup.pipelines.delta.store import Store, store_for
from caughtup.pipelines.delta.table import find_table
from caughtup.pipelines.generations.schema import GROUP_GENERATIONS, REPLAY_ROW
from caughtup.pipelines.replay.rows import read_flat_row, replay_rows
from caughtup.pipelines.schema import bucket
from caughtup.pipelines.spark.arrow import arrow_schema, to_arrow
from caughtup.pipelines.spark.session import Files, condition, one_line

#: Slots for each of Spark's threads; several even out wrong estimates of the work.
_SLOTS_A_THREAD = 4
#: The scenarios of a batch to Python: one of a large group takes 1 MB.
_ROWS_A_BATCH = 64
_ROWS_BACK = 256
#: The exceptions in which failures of the JVM reach Python.
_FAILURES = (PySparkException, Py4JError)


class ReplayUnit(NamedTuple):
    """A unit of work: a group under one setting (an index), with its estimated cost."""

    cost: int
    group: str
    setting: int


def recorded_generations(
    spark: SparkSession,
    uri: str,
    groups: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> DataFrame:
    """Read the table of generations of the history, or the folders of the generations job.

    ``groups``: only these; empty: all. ``environment``: the variables for opening the store. Raises
    CaughtupError ``no_table`` if there is none, or ``bad_table`` if it is another table.
    """
    place, delta = _delta_table(spark, uri, environment)
    try:
        names = (
            spark.read.parquet(uri).columns if delta is None else delta.schema().to_arrow().names
        )
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            raise CaughtupError("no_table", f"there is no table at {uri}") from error
        raise CaughtupError("bad_table", f"can't read {uri}: {one_line(error)}") from error
    except _FAILURES as error:
        raise CaughtupError("bad_table", f"can't read {uri}: {one_line(error)}") from error
    if missing := sorted(set(GROUP_GENERATIONS.names) - set(names)):
        raise CaughtupError(
            "bad_table", f"{uri} is not a table of generations: it has no column {missing[0]}"
        )
    if delta is not None:
        paths = sorted(delta.get_add_actions().column("path").to_pylist())
        chosen = pc.field("group").isin(list(groups)) if groups else None
        return read_rows(spark, place, paths, GROUP_GENERATIONS, chosen)
    table = spark.read.schema(GROUP_GENERATIONS).parquet(uri)
    if groups:
        buckets = sorted({bucket(group) for group in groups})
        table = table.where(F.col("group_bucket").isin(buckets) & F.col("group").isin(*groups))
    return table


def _delta_table(
    spark: SparkSession, uri: str, environment: Mapping[str, str]
) -> tuple[Store, DeltaTable | None]:
    """Open a Delta table; return None instead for folders of Parquet, at any URI of Hadoop."""
    place = Store(uri)
    try:
        place = store_for(spark, uri, environment)
        return place, find_table(place)
    except CaughtupError as error:
        try:
            there = Files(spark).exists(f"{uri}/_delta_log")
        except Py4JError:
            there = True
        if there:
            raise CaughtupError("bad_table", error.message) from error
        return place, None


def replay(
    spark: SparkSession, generations: DataFrame, settings: Sequence[ReplaySetting | None]
) -> DataFrame:
    """Return the rows of a replay, in the columns of REPLAY_ROW.

    A setting of None stands for the recorded decisions. Groups and settings are distributed over
    the threads by the sizes of their scenarios, large ones first. Raises CaughtupError
    ``bad_table``.
    """
    units = [
        ReplayUnit(cost, group, number)
        for group, cost in sorted(group_costs(generations).items())
        for number in range(len(settings))
    ]
    threads = spark.sparkContext.defaultParallelism
    slots = max(1, min(len(units), threads * _SLOTS_A_THREAD))
    keys = slot_keys(spark, slots)
    plan = spark.createDataFrame(
        [
            (keys[slot], order, unit.group, unit.setting)
            for order, (slot, unit) in enumerate(distribute(units, slots))
        ],
        "slot bigint, unit bigint, unit_group string, setting int",
    )
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _ROWS_A_BATCH)
    return (
        generations.withColumn("as_of_ms", F.unix_millis("as_of"))
        .withColumn("next_rebalance_ms", F.unix_millis("next_rebalance"))
        .join(F.broadcast(plan), F.col("group") == F.col("unit_group"))
        .select(
            *("slot", "unit", "setting", "group", "generation", "as_of_ms", "next_rebalance_ms"),
            *("members", "scenario", "doubts", "error"),
        )
        .repartition(slots, "slot")
        .sortWithinPartitions("unit", "as_of_ms", "generation")
        .mapInArrow(partial(_replay, tuple(settings)), REPLAY_ROW)
    )


def group_costs(generations: DataFrame) -> dict[str, int]:
    """Estimate each group's work by the size of its scenarios, about tasks times clients."""
    sizes = F.sum(F.coalesce(F.length("scenario"), F.lit(0)) + 1).alias("cost")
    try:
        return {
            row["group"]: row["cost"] for row in generations.groupBy("group").agg(sizes).collect()
        }
    except _FAILURES as error:
        raise CaughtupError("bad_table", f"can't read the table: {one_line(error)}") from error


def distribute(units: Iterable[ReplayUnit], slots: int) -> Iterator[tuple[int, ReplayUnit]]:
    """Distribute units over slots: the largest first, each to the slot with the least work."""
    loads = [(0, slot) for slot in range(slots)]
    for unit in sorted(units, key=lambda unit: (-unit.cost, unit.group, unit.setting)):
        load, slot = loads[0]
        heapq.heapreplace(loads, (load + unit.cost, slot))
        yield slot, unit


def slot_keys(spark: SparkSession, slots: int) -> list[int]:
    """Return a key for each slot, such that each slot gets a Spark partition of its own.

    Spark partitions rows by the key's hash, by which two slots' numbers may share a partition.
    """
    keys: dict[int, int] = {}
    tried = 0
    while len(keys) < slots:
        more = spark.range(tried, tried + 16 * slots)
        for key, slot in more.selectExpr("id", f"pmod(hash(id), {slots})").collect():
            keys.setdefault(slot, key)
        tried += 16 * slots
    return [keys[slot] for slot in range(slots)]


def write_rows(rows: DataFrame, output: str) -> DataFrame:
    """Write a replay's rows as a new Parquet table, and return that table.

    Raises CaughtupError ``output_exists`` or ``replay_failed``.
    """
    try:
        rows.write.mode("errorifexists").parquet(output)
    except AnalysisException as error:
        if condition(error) == "PATH_ALREADY_EXISTS":
            raise CaughtupError("output_exists", f"{output} is there already") from error
        raise _failed(error) from error
    except _FAILURES as error:
        raise _failed(error) from error
    return rows.sparkSession.read.schema(REPLAY_ROW).parquet(output)


def collect_rows(rows: DataFrame) -> list[ReplayRow]:
    """Return a replay's rows without their decisions, sorted by group, setting and time.

    Raises CaughtupError ``replay_failed``.
    """
    try:
        table = to_arrow(rows.drop("decision"))
    except _FAILURES as error:
        raise _failed(error) from error
    found = [read_flat_row(row) for row in table.to_pylist()]
    return sorted(found, key=lambda row: (row.group, row.setting, row.as_of_ms))


def _failed(error: Exception) -> CaughtupError:
    return CaughtupError("replay_failed", f"the replay ended: {one_line(error)}")


def _replay(
    settings: Sequence[ReplaySetting | None], batches: Iterable[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    arrow = arrow_schema(REPLAY_ROW)
    rows: list[dict[str, object]] = []
    for row in _rows(settings, batches):
        rows.append(row)
        if len(rows) == _ROWS_BACK:
            yield pyarrow.RecordBatch.from_pylist(rows, schema=arrow)
            rows = []
    if rows:
        yield pyarrow.RecordBatch.from_pylist(rows, schema=arrow)


def _rows(
    settings: Sequence[ReplaySetting | None], batches: Iterable[pyarrow.RecordBatch]
) -> Iterator[dict[str, object]]:
    recorded = (row for batch in batches for row in batch.to_pylist())
    for _, of_unit in groupby(recorded, key=itemgetter("unit")):
        unit = list(of_unit)
        yield from replay_rows(unit, [settings[unit[0]["setting"]]])
