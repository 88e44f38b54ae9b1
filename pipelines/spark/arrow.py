"""Tables in Arrow, alike under each release of Spark.

PySpark's own function for a schema is internal, and its arguments change from release to release.
"""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_PLAIN: dict[type[DataType], pa.DataType] = {
    BinaryType: pa.binary(),
    BooleanType: pa.bool_(),
    DateType: pa.date32(),
    DoubleType: pa.float64(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    StringType: pa.string(),
    TimestampType: pa.timestamp("us", tz="UTC"),
}


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return the Arrow schema of columns. Times are in microseconds, in UTC.

    Raises KeyError for a type that no table has.
    """
    return pa.schema([_field(column) for column in columns.fields])


def to_arrow(frame: DataFrame) -> pa.Table:
    """Return all rows of a data frame in the driver's memory."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    batches = cast(Any, frame)._collect_as_arrow()  # Spark 3.5 has no public method for it
    return pa.Table.from_batches(batches, arrow_schema(frame.schema))


def _field(column: StructField) -> pa.Field:
    return pa.field(column.name, _type(column.dataType), nullable=column.nullable)


def _type(kind: DataType) -> pa.DataType:
    if isinstance(kind, StructType):
        return pa.struct([_field(column) for column in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", _type(kind.elementType), nullable=kind.containsNull))
    if isinstance(kind, MapType):
        value = pa.field("value", _type(kind.valueType), nullable=kind.valueContainsNull)
        return pa.map_(pa.field("key", _type(kind.keyType), nullable=False), value)
    return _PLAIN[type(kind)]
