"""Writes a batch's rows into tables exactly once, whatever ends the driver in between.

Files are first written aside and then renamed to a name that only this batch has. A batch that is
done again finds what it already put in place, leaves that, and adds what is missing: nothing is
there twice. What is in place stays as it is, since the log that it came from is compacted and may
say less by now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from caughtup.pipelines.spark.files import Files
from caughtup.pipelines.tables import Table

STAGING = "_staging"
TABLES = "tables/"
_FOLDER = "folder="
#: What every Parquet file ends with.
_LAST = "1"


class TableWriter:
    """Writes batches into the tables under a root, a path or URI that Hadoop knows."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root.rstrip("/")
        self.files = Files(spark)

    def path(self, table: Table) -> str:
        """Return a table's directory."""
        return f"{self.root}/{table.name}"

    def stage(self, batch: int, files: DataFrame) -> dict[str, list[str]]:
        """Write files, rows of NEW_FILES, aside; give the paths of each of their folders.

        Spark's own workers write them, to wherever Spark can, as lines of a text: Spark writes a
        text's bytes as they are, and ends it by what it is told to end lines by.
        """
        staged = self._staged(batch)
        (
            files.selectExpr("folder", "substring(content, 1, length(content) - 1) AS content")
            .selectExpr("folder", "CAST(content AS string) AS content")
            .write.partitionBy("folder")
            .mode("overwrite")
            .option("lineSep", _LAST)
            .option("compression", "none")
            .text(staged)
        )
        return {
            unquote(folder.removeprefix(_FOLDER)): [f"{staged}/{folder}/{name}" for name in names]
            for folder, names in self.files.walk(staged, ".txt").items()
        }

    def put(self, batch: int, staged: Mapping[str, Sequence[str]]) -> None:
        """Move the staged files of tables into place."""
        for folder in sorted(staged):
            if folder.startswith(TABLES):
                self._put(batch, staged[folder], f"{self.root}/{folder.removeprefix(TABLES)}")

    def write(self, table: Table, batch: int, rows: DataFrame) -> None:
        """Write rows that Spark has, with the table's columns and those of its folders."""
        staged = f"{self._staged(batch)}/_{table.name}"
        rows.write.partitionBy("date", table.bucket).mode("overwrite").parquet(staged)
        for folder, names in sorted(self.files.walk(staged, ".parquet").items()):
            paths = [f"{staged}/{folder}/{name}" for name in names]
            self._put(batch, paths, f"{self.path(table)}/{folder}")

    def aside(self, batch: int, name: str, rows: DataFrame) -> str:
        """Write a few rows aside, and tell where they are."""
        path = f"{self._staged(batch)}/_{name}"
        rows.coalesce(1).write.mode("overwrite").parquet(path)
        return path

    def done(self, batch: int) -> None:
        """Remove what is left aside of a batch."""
        self.files.delete(self._staged(batch))

    def _staged(self, batch: int) -> str:
        return f"{self.root}/{STAGING}/batch-{batch}"

    def _put(self, batch: int, paths: Sequence[str], target: str) -> None:
        for number, path in enumerate(sorted(paths)):
            suffix = f"-{number}" if number else ""
            self.files.put(path, f"{target}/batch-{batch:010}{suffix}.parquet")
