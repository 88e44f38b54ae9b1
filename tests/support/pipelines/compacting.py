"""Compacting as the tests do it, without a person who waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from caughtup.pipelines.compaction.job import Compactions, CompactOptions, compact
from tests.support.pipelines.small_files import TODAY, folder, write_file

#: What small_history's one file is called once it is compacted, and the journal of that.
MADE = "compacted-0000000001-0000000004-000.parquet"
JOURNAL = "lag.date=2026-11-20.group_bucket=1.compacted-0000000001-0000000004"


@contextmanager
def _silent(_what: str, _steps: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


def run_compaction(spark: SparkSession, root: Path | str, **options: Any) -> Compactions:
    """Compact a history as on TODAY."""
    return compact(spark, CompactOptions(str(root), TODAY, **options), _silent)


def small_history(root: Path) -> Path:
    """Write one folder of three files, whose rows compacting has to keep, and a newer batch."""
    place = folder(root, "lag", 2, "group_bucket", 1)
    for batch in (1, 2, 4):
        write_file(place, batch, TODAY)
    write_file(folder(root, "lag", 0, "group_bucket", 1), 5, TODAY)
    return place
