"""Split the rows of a table by day, into the rows of single files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.types import StringType

from caughtup.pipelines.schema import BUCKETS
from caughtup.pipelines.tables import Table

_DAY_US = 86_400_000_000


class TablePart(NamedTuple):
    """The rows of one file of a table; ``texts``: columns with few distinct values."""

    table: str
    folder: str
    rows: pa.Table
    texts: tuple[str, ...]


def table_parts(table: Table, bucket: int, rows: pa.Table) -> Iterator[TablePart]:
    """Yield a bucket's rows by day, with the table's columns and in the given order."""
    rows = rows.select(table.columns.names)
    days = _days(rows.column(table.time))
    for day in np.unique(days):
        of_day = rows if (days == day).all() else rows.filter(pa.array(days == day))
        date = np.datetime64(int(day), "D")
        folder = f"date={date}/{table.bucket}={bucket % BUCKETS}"
        yield TablePart(table.name, folder, of_day, _texts(table))


def _days(times: pa.ChunkedArray) -> NDArray[np.int64]:
    # A row without a time goes into the folder of 1970-01-01.
    known = pc.fill_null(times.cast(pa.int64()), 0)
    days: NDArray[np.int64] = known.to_numpy() // _DAY_US
    return days


def _texts(table: Table) -> tuple[str, ...]:
    return tuple(
        f.name for f in table.columns if isinstance(f.dataType, StringType) and f.name != "record"
    )
