"""What the history remembers between batches, next to Spark's checkpoint.

Each batch reads what the one before it left, and leaves its own: a batch that is done again starts
from where it started the first time. Plain Parquet, one row for each thing remembered, so that it
can be looked at. What didn't change is not written again but named.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.files import Files
from caughtup.pipelines.tables import empty

#: Batches whose states are kept: Spark does the last one again that it didn't note as done.
_KEPT = 3


class HistoryState:
    """The states of batches in a directory below the checkpoint."""

    def __init__(self, spark: SparkSession, directory: str, shapes: Mapping[str, StructType]):
        """``shapes`` names what is remembered, and its columns."""
        self._spark = spark
        self._directory = directory
        self._shapes = dict(shapes)
        self._files = Files(spark)

    def before(self, batch: int) -> dict[str, DataFrame]:
        """Give what the batch before this one left, nothing for the first.

        Raises CaughtupError ``bad_checkpoint`` where it is missing or can't be read.
        """
        left = self._left(batch - 1) if batch else {}
        frames = {}
        for name, shape in sorted(self._shapes.items()):
            reader = self._spark.read.schema(shape)
            if name in left:
                frames[name] = reader.parquet(f"{self._directory}/{left[name]}")
            else:
                frames[name] = empty(self._spark, shape)
        return frames

    def leave(self, batch: int, changed: Mapping[str, DataFrame]) -> None:
        """Leave what a batch changed, and name the rest; forget old states."""
        left = self._left(batch - 1) if batch else {}
        for name, frame in sorted(changed.items()):
            place = f"{name}-{batch:010}"
            aside = f"{self._directory}/_{place}"
            frame.coalesce(1).write.mode("overwrite").parquet(aside)
            if not self._files.put(aside, f"{self._directory}/{place}"):
                self._files.delete(aside)
            left[name] = place
        if not self._files.exists(self._named(batch)):
            self._files.write(self._named(batch), msgspec.json.encode(left))
        self._forget(batch - _KEPT, set(left.values()))

    def _forget(self, newest: int, used: set[str]) -> None:
        for name in self._files.names(self._directory):
            of, _, number = name.removesuffix(".json").rpartition("-")
            if of and number.isdigit() and int(number) <= newest and name not in used:
                self._files.delete(f"{self._directory}/{name}")

    def _left(self, batch: int) -> dict[str, str]:
        named = self._named(batch)
        try:
            if self._files.exists(named):
                return msgspec.json.decode(self._files.read(named), type=dict[str, str])
            why = "it is missing"
        except msgspec.DecodeError as error:
            why = str(error)
        raise CaughtupError(
            "bad_checkpoint",
            f"the checkpoint's state of batch {batch}, {named}, can't be read: {why}; start anew "
            "with another --checkpoint and another --output",
        )

    def _named(self, batch: int) -> str:
        return f"{self._directory}/state-{batch:010}.json"
