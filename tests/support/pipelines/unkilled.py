"""A history of the same log that was never killed: a checkpoint's batches, each written once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from caughtup.models.ids import TopicPartition
from caughtup.pipelines.history.batch import HistoryBatches
from caughtup.pipelines.history.lost_ranges import batch_offsets
from caughtup.pipelines.history.tables import offsets_digest
from caughtup.pipelines.schema import TABLE_TOPICS
from caughtup.pipelines.spark.kafka_options import source_options
from caughtup.pipelines.spark.session import Files
from caughtup.pipelines.spark.sources import FETCHING
from tests.support.pipelines.delta import new_tables

_Offsets = Mapping[TopicPartition, int]
#: Spark's start offset of a new partition.
_EARLIEST = -2


def write_unkilled(
    spark: SparkSession, servers: str, prefix: str, checkpoint: Path, tables: Path
) -> int:
    """Write all batches of a checkpoint to separate tables, and return their number.

    ``prefix`` is that of the service's topics. The log must still have all records of the batches.
    """
    files = Files(spark)
    kinds = {f"{prefix}{name}": table for table, name in TABLE_TOPICS.items()}
    batches = HistoryBatches(spark, new_tables(tables), kinds)
    before: _Offsets = {}
    numbers = sorted(
        int(one.name) for one in (checkpoint / "commits").iterdir() if one.suffix == ""
    )
    assert numbers == list(range(len(numbers))), "the checkpoint has lost its first batches"
    for number in numbers:
        until = batch_offsets(files, str(checkpoint), number)
        records = _records(spark, servers, before, until)
        batches.write(number, offsets_digest(until), records, [])
        before = until
    return len(numbers)


def _records(spark: SparkSession, servers: str, before: _Offsets, until: _Offsets) -> DataFrame:
    places: dict[str, list[int]] = {}
    for topic, partition in sorted(until):
        places.setdefault(topic, []).append(partition)
    start = {one: before.get(one, _EARLIEST) for one in until}
    reader = (
        spark.read.format("kafka")
        .options(**{**FETCHING, **source_options(servers, {})})
        .option("assign", json.dumps(places))
        .option("startingOffsets", _written(start))
        .option("endingOffsets", _written(until))
        .option("kafka.isolation.level", "read_committed")
    )
    return reader.load().selectExpr(
        "topic", "partition", "offset", "unix_millis(timestamp) AS timestamp_ms", "key", "value"
    )


def _written(offsets: _Offsets) -> str:
    found: dict[str, dict[str, int]] = {}
    for one, offset in offsets.items():
        found.setdefault(one.topic, {})[str(one.partition)] = offset
    return json.dumps(found)
