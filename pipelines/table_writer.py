"""Writes a batch's rows into a table exactly once, whatever ends the driver in between.

Rows are first written aside and then renamed to a name that only this batch has. A batch that is
done again finds what it already put in place, leaves that, and adds what is missing: nothing is
there twice. What is in place stays as it is, since the log that it came from is compacted and may
say less by now.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)

from caughtup.pipelines.files import Files
from caughtup.pipelines.replay import slot_keys
from caughtup.pipelines.schema import BUCKETS
from caughtup.pipelines.tables import Table, bucket_column

STAGING = "_staging"


class TableWriter:
    """Writes batches into the tables under a root, a path or URI that Hadoop knows."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root.rstrip("/")
        self.files = Files(spark)
        self._places = slot_keys(spark, BUCKETS)

    def path(self, table: Table) -> str:
        """Give a table's directory."""
        return f"{self.root}/{table.name}"

    def filed(self, table: Table, rows: DataFrame) -> DataFrame:
        """Add the columns that become folders; bring each bucket's rows together, and in order.

        Neighbours compress well, and a query for one group skips the pages of others.
        """
        together = self.together(table, rows.withColumn("date", F.to_date(table.time)))
        return together.sortWithinPartitions(table.order)

    def together(self, table: Table, rows: DataFrame) -> DataFrame:
        """Bring each bucket's rows to a task of its own, by a column ``place``."""
        places = F.array(*(F.lit(place) for place in self._places))
        return (
            rows.withColumn(table.bucket, bucket_column(table.bucket_by))
            .withColumn("place", F.element_at(places, F.col(table.bucket) + 1))
            .repartition(BUCKETS, "place")
        )

    def write(self, table: Table, batch: int, rows: DataFrame) -> None:
        """Put a batch's rows, filed and with the table's columns, into their folders."""
        staged = f"{self.root}/{STAGING}/{table.name}-{batch}"
        (
            rows.select(*table.stored.names)
            .write.partitionBy("date", table.bucket)
            .mode("overwrite")
            .parquet(staged)
        )
        found = self.files.walk(staged, ".parquet")
        for folder, names in sorted(found.items()):
            self._put(staged, folder, names, f"{self.path(table)}/{folder}", batch)
        self.files.delete(staged)

    def _put(self, staged: str, folder: str, names: Sequence[str], target: str, batch: int) -> None:
        for number, name in enumerate(sorted(names)):
            suffix = f"-{number}" if number else ""
            self.files.put(
                f"{staged}/{folder}/{name}", f"{target}/batch-{batch:010}{suffix}.parquet"
            )
