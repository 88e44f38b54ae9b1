"""What the history remembers between batches, next to Spark's checkpoint.

Each batch reads what the one before it left, and leaves its own: a batch that is done again starts
from where it started the first time. Plain Parquet, one row for each thing remembered, so that it
can be looked at. What didn't change is not written again but named.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.spark.files import Files

#: Batches whose states are kept: Spark does the last one again that it didn't note as done.
_KEPT = 3


class HistoryState:
    """The states of batches in a directory below the checkpoint."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._directory = directory
        self._files = Files(spark)

    def before(self, batch: int) -> dict[str, str]:
        """Return the paths (Parquet) of the state before a batch, by name; none for the first.

        Raises CaughtupError ``bad_checkpoint`` where it is missing or can't be read.
        """
        left = self._left(batch - 1) if batch else {}
        return {name: f"{self._directory}/{place}" for name, place in sorted(left.items())}

    def leave(self, batch: int, changed: Mapping[str, str]) -> None:
        """Keep the files or folders that a batch changed, and name the rest; delete old states."""
        left = self._left(batch - 1) if batch else {}
        for name, staged in sorted(changed.items()):
            left[name] = f"{name}-{batch:010}.parquet"
            self._files.put(staged, f"{self._directory}/{left[name]}")
        if not self._files.exists(self._named(batch)):
            self._files.write(self._named(batch), msgspec.json.encode(left))
        self._forget(batch - _KEPT, set(left.values()))

    def _forget(self, newest: int, used: set[str]) -> None:
        for name in self._files.names(self._directory):
            of, _, number = name.rpartition(".")[0].rpartition("-")
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
