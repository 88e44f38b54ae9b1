"""The service's own topics as rows of tables, in Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType

from caughtup.pipelines.decode import QUARANTINE
from caughtup.pipelines.events import Record
from caughtup.pipelines.own_records import KINDS, decode_own
from caughtup.pipelines.tables import Table, columns

END_OFFSETS = "end_offsets"
_BROKEN = columns(
    kind=StringType(),
    log_topic=StringType(),
    record_time_ms=LongType(),
    key=BinaryType(),
    value=BinaryType(),
    why=StringType(),
)


def own_table(name: str) -> Table:
    """Give the table that a topic's records become; ``as_of_ms`` becomes a timestamp, as_of."""
    kind = KINDS[name]
    fields = [field for field in kind.columns if field.name != "as_of_ms"]
    shape = StructType([*columns(as_of=TimestampType()).fields, *fields])
    return Table(name, shape, "as_of", kind.bucket, kind.bucket_by)


def own_shape(name: str) -> StructType:
    """Give the columns of ``own_rows``."""
    return StructType([*KINDS[name].columns.fields, *_BROKEN.fields])


def own_rows(found: DataFrame, name: str) -> DataFrame:
    """Decode a topic's records: KINDS' columns, and of those that can't be, the record and why."""
    records = found.where(F.col("kind") == name).select(
        *("log_topic", "log_partition", "log_offset", "record_time_ms", "key", "value")
    )
    return records.mapInArrow(partial(_decode, name), own_shape(name))


def _decode(name: str, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    own = KINDS[name].columns.names
    arrow = to_arrow_schema(own_shape(name))
    for batch in batches:
        columns = (column.to_pylist() for column in batch)
        records = map(Record._make, zip(*columns, strict=True))
        good, broken = decode_own(name, records)
        rows = [dict(zip(own, row, strict=True)) for row in good]
        rows += [
            {
                "kind": QUARANTINE,
                "log_topic": record.topic,
                "log_partition": record.partition,
                "log_offset": record.offset,
                "record_time_ms": record.timestamp_ms,
                "key": record.key,
                "value": record.value,
                "why": why,
            }
            for record, why in broken
        ]
        if rows:
            yield pyarrow.RecordBatch.from_pylist(rows, schema=arrow)
