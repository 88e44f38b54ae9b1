"""Split the rows of a table by day, into the rows of single files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.types import StringType

from caughtup.pipelines.schema import BUCKETS, LATEST_MS
from caughtup.pipelines.tables import Table

_US_A_MS = 1_000
_DAY_MS = 86_400_000


class TablePart(NamedTuple):
    """The rows of one file of a table; ``texts``: columns with few distinct values."""

    table: str
    folder: str
    rows: pa.Table
    texts: tuple[str, ...]


def table_parts(table: Table, bucket: int, rows: pa.Table) -> Iterator[TablePart]:
    """Yield a bucket's rows by day, with the table's columns and in the given order."""
    # A row without a time goes into the folder of 1970-01-01.
    times = pc.fill_null(rows.column(table.time).cast(pa.int64()), 0).to_numpy()
    rows = rows.select(table.columns.names)
    yield from parts_by_day(
        table,
        bucket,
        times // _US_A_MS,
        lambda chosen: rows if isinstance(chosen, slice) else rows.take(pa.array(chosen)),
    )


def parts_by_day(
    table: Table,
    bucket: int,
    times_ms: NDArray[np.int64],
    rows_of: Callable[[NDArray[np.int64] | slice], pa.Table],
) -> Iterator[TablePart]:
    """Yield a bucket's rows by day (UTC), which ``rows_of`` returns for some of the times.

    ``times_ms``: of each row, ms since 1970; other times than the table can have count as 0.
    ``rows_of`` is called with the indices of a day's times, or with a slice of all of them.
    """
    days = np.where((times_ms >= 0) & (times_ms <= LATEST_MS), times_ms // _DAY_MS, 0)
    if not len(days):
        return
    whole = days.min() == days.max()
    for day in days[:1] if whole else np.unique(days):
        rows = rows_of(slice(None) if whole else np.flatnonzero(days == day))
        date = np.datetime64(int(day), "D")
        folder = f"date={date}/{table.bucket}={bucket % BUCKETS}"
        yield TablePart(table.name, folder, rows, _texts(table))


def _texts(table: Table) -> tuple[str, ...]:
    return tuple(
        f.name for f in table.columns if isinstance(f.dataType, StringType) and f.name != "record"
    )
