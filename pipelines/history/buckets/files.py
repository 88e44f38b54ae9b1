"""Rows of tables to Parquet files in memory, one for each day that they are of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql.types import StringType

from caughtup.pipelines.tables import Table

_DAY_US = 86_400_000_000


class NewFile(NamedTuple):
    """A file that is to be: its folder below a batch's, and its bytes."""

    folder: str
    content: bytes


def table_files(table: Table, bucket: int, rows: pa.Table) -> Iterator[NewFile]:
    """Return the files of a bucket's rows, which have the table's columns and are in its order."""
    rows = rows.select(table.columns.names)
    days = _days(rows.column(table.time))
    for day in np.unique(days):
        of_day = rows if (days == day).all() else rows.filter(pa.array(days == day))
        date = np.datetime64(int(day), "D")
        content = parquet_file(of_day, _texts(table))
        yield NewFile(f"tables/{table.name}/date={date}/{table.bucket}={bucket}", content)


def parquet_file(rows: pa.Table, texts: tuple[str, ...]) -> bytes:
    """Write a Parquet file; ``texts`` are the columns whose values are few beside the rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        compression="zstd",
        use_dictionary=list(texts),
        # Rows of a group stand together: a query for one skips the pages of others.
        write_page_index=True,
        # Readers are to find plain columns, not what they are in our memory.
        store_schema=False,
    )
    return sink.getvalue().to_pybytes()


def _days(times: pa.ChunkedArray) -> NDArray[np.int64]:
    # A row without a time is filed under the first day there is, as none is lost.
    known = pc.fill_null(times.cast(pa.int64()), 0)
    return known.to_numpy() // _DAY_US


def _texts(table: Table) -> tuple[str, ...]:
    return tuple(
        f.name for f in table.columns if isinstance(f.dataType, StringType) and f.name != "record"
    )
