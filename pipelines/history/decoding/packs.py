"""Packs: many rows as one binary value, to move them between Spark's workers.

Moving one binary value costs Spark a fraction of moving each row's fields. A pack has rows in
Arrow's stream format, or is a Parquet file of the state.
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

#: The kind of a pack's rows, the bucket that it is for, and the pack.
PACKED = columns(kind=StringType(), bucket=IntegerType(), data=BinaryType())
#: The type of columns of names, which have few distinct values.
NAMES = pa.dictionary(pa.int32(), pa.string())
_ARROW = pa.schema([("kind", pa.string()), ("bucket", pa.int32()), ("data", pa.binary())])
_WRITING = pa.ipc.IpcWriteOptions(compression="lz4")
_PARQUET = b"PAR1"
_NAMED = ("group", "topic")


def pack(parts: Sequence[pa.RecordBatch]) -> bytes:
    """Pack record batches of one schema into one value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, parts[0].schema, options=_WRITING) as writer:
        for part in parts:
            writer.write_batch(part)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def with_names(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert the columns ``group`` and ``topic``, if any, to the type NAMES."""
    for place, field in enumerate(rows.schema):
        if field.name in _NAMED and field.type != NAMES:
            names = rows.column(place).dictionary_encode()
            rows = rows.set_column(place, field.with_type(NAMES), names)
    return rows


def unpack(data: bytes) -> pa.Table:
    """Return a pack's rows; columns of names have the type NAMES."""
    if data[:4] == _PARQUET:
        return pq.read_table(pa.BufferReader(data), read_dictionary=list(_NAMED))
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()


def packed_rows(kind: str, packs: Sequence[tuple[int, bytes]]) -> pa.RecordBatch:
    """Return rows of PACKED from the packs of one kind, each given with its bucket."""
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
    """Split rows by the bucket of each row's name; buckets without rows are left out."""
    of_row = buckets_of(names, buckets)
    for number in range(buckets):
        chosen = np.flatnonzero(of_row == number)
        if len(chosen) == len(rows):
            yield number, rows
        elif chosen.size:
            yield number, rows.take(pa.array(chosen))


def buckets_of(names: pa.Array, buckets: int) -> NDArray[np.int64]:
    """Return the bucket (0 to ``buckets`` - 1) of each name; null counts as "".

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
    """Return for each row the first value that is not null, "" if all are."""
    return pc.coalesce(*columns, pa.scalar(""))
