"""Rows of lag in the history's tables, as one of its batches puts them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from caughtup.pipelines.history.buckets.files import table_files
from caughtup.pipelines.history.buckets.tables import NEW_FILES
from caughtup.pipelines.history.decoding.packs import by_bucket
from caughtup.pipelines.history.table_writer import TableWriter
from caughtup.pipelines.tables import LAG


def write_lag(
    spark: SparkSession, root: Path | str, batch: int, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Write a batch whole, from its files aside to their end; what a row doesn't say is null."""
    writer = TableWriter(spark, str(root))
    writer.put(batch, writer.stage(batch, lag_files(spark, rows)))
    writer.done(batch)


def lag_files(spark: SparkSession, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return the files of rows, as Spark has them."""
    batch = pa.RecordBatch.from_pylist(list(rows), schema=to_arrow_schema(LAG.columns))
    files = [
        (file.folder, bytearray(file.content))
        for bucket, own in by_bucket(batch, batch.column("group"))
        for file in table_files(LAG, bucket, pa.Table.from_batches([own]))
    ]
    return spark.createDataFrame(files, NEW_FILES)
