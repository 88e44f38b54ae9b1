"""Rows of a bucket after they were written and read again."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq


def as_file(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=False)
    return sink.getvalue().to_pybytes()
