"""The service's own topics as columns of tables."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType, TimestampType

from caughtup.pipelines.events import Record, Undecodable
from caughtup.pipelines.history.decoding.topic_records import decode_own
from caughtup.pipelines.history.decoding.topic_schema import KINDS
from caughtup.pipelines.tables import Table, columns

END_OFFSETS = "end_offsets"


class OwnColumns(NamedTuple):
    """What records of a topic say, in the columns of KINDS, and those that can't be decoded."""

    rows: pa.RecordBatch
    undecodable: list[Undecodable]


def own_columns(name: str, batch: pa.RecordBatch) -> OwnColumns:
    """Decode a topic's records, whose columns are those of caughtup.pipelines.events.Record."""
    fields = (column.to_pylist() for column in batch)
    rows, undecodable = decode_own(name, map(Record._make, zip(*fields, strict=True)))
    schema = _arrow(name)
    of_column = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(of_column, schema, strict=True)]
    return OwnColumns(pa.RecordBatch.from_arrays(arrays, schema=schema), undecodable)


def own_table(name: str) -> Table:
    """Return the table that a topic's records become; ``as_of_ms`` becomes a timestamp, as_of."""
    kind = KINDS[name]
    fields = [field for field in kind.columns if field.name != "as_of_ms"]
    shape = StructType([*columns(as_of=TimestampType()).fields, *fields])
    return Table(name, shape, "as_of", kind.bucket, kind.bucket_by)


@cache
def _arrow(name: str) -> pa.Schema:
    return to_arrow_schema(KINDS[name].columns)
