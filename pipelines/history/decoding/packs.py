"""Columns on their way between Spark's workers: many rows as one value.

Spark moves what it doesn't look into as bytes, which costs a fraction of moving each row's fields.
A pack is rows in Arrow's stream format, or a Parquet file of what was remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql.types import BinaryType, IntegerType, StringType

from caughtup.pipelines.schema import bucket
from caughtup.pipelines.tables import columns

#: What is in a pack, whose bucket it is for, and the pack.
PACKED = columns(kind=StringType(), bucket=IntegerType(), data=BinaryType())
#: Names, of which there are few beside the rows that have them.
NAMES = pa.dictionary(pa.int32(), pa.string())
_ARROW = pa.schema([("kind", pa.string()), ("bucket", pa.int32()), ("data", pa.binary())])
_WRITING = pa.ipc.IpcWriteOptions(compression="lz4")
_PARQUET = b"PAR1"
_NAMED = ("group", "topic")


def pack(parts: Sequence[pa.RecordBatch]) -> bytes:
    """Make one value of rows of one schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, parts[0].schema, options=_WRITING) as writer:
        for part in parts:
            writer.write_batch(part)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def with_names(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert a column ``group`` or ``topic`` to the type NAMES."""
    for place, field in enumerate(rows.schema):
        if field.name in _NAMED and field.type != NAMES:
            names = rows.column(place).dictionary_encode()
            rows = rows.set_column(place, field.with_type(NAMES), names)
    return rows


def unpack(data: bytes) -> pa.Table:
    """Return a pack's rows; columns of names are of the type NAMES."""
    if data[:4] == _PARQUET:
        return pq.read_table(pa.BufferReader(data), read_dictionary=list(_NAMED))
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()


def packed_rows(kind: str, packs: Sequence[tuple[int, bytes]]) -> pa.RecordBatch:
    """Make rows of PACKED of one kind's packs, each with its bucket."""
    return pa.RecordBatch.from_pydict(
        {
            "kind": [kind] * len(packs),
            "bucket": [number for number, _ in packs],
            "data": [data for _, data in packs],
        },
        schema=_ARROW,
    )


def by_bucket(
    rows: pa.RecordBatch, names: pa.Array, buckets: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split rows by the bucket of a name each; buckets without rows are left out."""
    of_row = buckets_of(names, buckets)
    for number in range(buckets):
        chosen = np.flatnonzero(of_row == number)
        if len(chosen) == len(rows):
            yield number, rows
        elif chosen.size:
            yield number, rows.take(pa.array(chosen))


def buckets_of(names: pa.Array, buckets: int) -> NDArray[np.int64]:
    """Return the bucket of each name, one of so many; a null's is that of "".

    Each distinct name is hashed once.
    """
    if not pa.types.is_dictionary(names.type):
        names = names.dictionary_encode()
    of_name = np.array(
        [bucket(name or "", buckets) for name in (*names.dictionary.to_pylist(), "")]
    )
    indices = pc.fill_null(names.indices, len(names.dictionary))
    of_row: NDArray[np.int64] = of_name[indices.to_numpy()]
    return of_row


def first_of(columns: Iterable[pa.Array]) -> pa.Array:
    """Return, row by row, the first that is not null, and "" where all are."""
    return pc.coalesce(*columns, pa.scalar(""))
