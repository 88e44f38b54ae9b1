"""Write and read Parquet files of tables, on Spark's workers.

A written file is not in its table until the driver commits it, by the NewFile that is returned
here. A file that is never committed, because its task or batch was repeated, is removed by vacuum.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.tables import columns, empty

#: The columns of NewFile, in which workers return written files to the driver.
NEW_FILES = columns(
    table=StringType(), path=StringType(), size=LongType(), rows=IntegerType(), stats=StringType()
)
#: The bytes that are passed to a store at once.
_BUFFER = 1 << 20
#: The columns with statistics, by which readers skip files.
_SKIPPED_BY = (
    *("as_of", "commit_timestamp", "seen", "group", "topic", "partition"),
    *("log_partition", "log_offset"),
)


class NewFile(NamedTuple):
    """A new file: its table, its path below that, its bytes and rows, and statistics as JSON."""

    table: str
    path: str
    size: int
    rows: int
    stats: str

    @property
    def partition(self) -> dict[str, str | None]:
        """The values of the table's partition columns, from the file's folders."""
        return partition_of(self.path)


def partition_of(path: str) -> dict[str, str | None]:
    """Return the partition values in a file's path, such as date and group_bucket."""
    folders = (folder.partition("=") for folder in path.split("/")[:-1])
    return {name: value for name, _, value in folders}


def write_file(
    root: Store, table: str, folder: str, prefix: str, rows: pa.Table, texts: Sequence[str]
) -> NewFile:
    """Write rows into a new file of a table, with a unique name.

    ``root``: the store of all tables. ``texts``: columns with few distinct values. Raises OSError.
    """
    path = f"{folder}/{prefix}-{secrets.token_hex(8)}.parquet"
    place, metadata = root.at(table), list[pq.FileMetaData]()
    try:
        size = _write(place, path, rows, texts, metadata)
    except (DeltaError, OSError) as error:
        # A worker's exception reaches the driver as text, of which the first line is shown.
        raise OSError(f"can't write {place.uri}: {place.describe(error)}") from None
    return new_file(table, path, size, metadata[0])


def _write(
    place: Store, path: str, rows: pa.Table, texts: Sequence[str], metadata: list[pq.FileMetaData]
) -> int:
    dictionaries = [*texts, *(f.name for f in rows.schema if pa.types.is_dictionary(f.type))]
    # Sorted rows have numbers and times that differ little from one to the next: as differences
    # they take a fraction of the bytes, and the compression of the time.
    numbers = {f.name: "DELTA_BINARY_PACKED" for f in rows.schema if _is_number(f.type)}
    with place.filesystem().open_output_stream(path, buffer_size=_BUFFER) as stream:
        pq.write_table(
            rows,
            stream,
            compression="zstd",
            use_dictionary=dictionaries,
            column_encoding=numbers,
            write_statistics=[name for name in rows.column_names if name in _SKIPPED_BY],
            # Rows are sorted by group: a query for one group skips the pages of others.
            write_page_index=True,
            # Without it readers get plain columns instead of Arrow's dictionaries.
            store_schema=False,
            metadata_collector=metadata,
        )
        written: int = stream.tell()
        return written


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def statistics(metadata: pq.FileMetaData) -> str:
    """Return a file's statistics in Delta's JSON: rows; minimum, maximum, nulls by column."""
    least: dict[str, object] = {}
    most: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for number in range(metadata.num_columns):
        name = metadata.schema.column(number).path
        groups = range(metadata.num_row_groups)
        found = [metadata.row_group(group).column(number).statistics for group in groups]
        if name not in _SKIPPED_BY or not all(one and one.has_null_count for one in found):
            continue
        nulls[name] = sum(one.null_count for one in found)
        known = [one for one in found if one.has_min_max]
        # A column needs bounds in all row groups with values.
        if known and all(one.has_min_max or one.num_values == 0 for one in found):
            least[name] = _as_statistic(min(one.min for one in known))
            most[name] = _as_statistic(max(one.max for one in known))
    of_rows = {"numRecords": metadata.num_rows}
    return json.dumps({**of_rows, "minValues": least, "maxValues": most, "nullCount": nulls})


def _as_statistic(value: int | str | datetime) -> int | str:
    # Delta's statistics have times in ms; ours are whole ms.
    return value if isinstance(value, int | str) else value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def write_rows(
    rows: DataFrame, root: Store, table: str, partition_by: Sequence[str], prefix: str
) -> list[NewFile]:
    """Write a DataFrame's rows: a file for each Spark partition and each folder."""
    written = rows.mapInArrow(
        partial(_write_batches, root, table, tuple(partition_by), prefix), NEW_FILES
    )
    return [NewFile(*row) for row in written.collect()]


def read_rows(
    spark: SparkSession,
    place: Store,
    paths: Sequence[str],
    schema: StructType,
    where: pc.Expression | None = None,
) -> DataFrame:
    """Return the rows of a table's files as a DataFrame; columns that a file lacks are null."""
    if not paths:
        return empty(spark, schema)
    files = spark.createDataFrame([(path,) for path in paths], "path string")
    return files.mapInArrow(partial(_read, place, schema, where), schema)


def read_arrow(place: Store, paths: Sequence[str], schema: pa.Schema) -> ds.Dataset:
    """Return a table's files as an Arrow dataset; folders in the schema become columns."""
    partitioning = ds.partitioning(flavor="hive")
    folders = sorted({name for path in paths for name in partition_of(path)})
    fields = [schema.field(name) for name in folders if name in schema.names]
    if fields:
        partitioning = ds.partitioning(pa.schema(fields), flavor="hive")
    return ds.dataset(
        list(paths),
        schema=schema,
        format="parquet",
        filesystem=place.filesystem(),
        partitioning=partitioning,
    )


def _read(
    place: Store,
    schema: StructType,
    where: pc.Expression | None,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    paths = [path for batch in batches for path in batch.column(0).to_pylist()]
    if paths:
        arrow = arrow_schema(schema)
        for batch in read_arrow(place, paths, arrow).to_batches(filter=where):
            if batch.num_rows:
                yield batch.select(arrow.names).cast(arrow)


def _write_batches(
    root: Store,
    table: str,
    partition_by: tuple[str, ...],
    prefix: str,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return
    rows = pa.Table.from_batches(found)
    keys = [rows.column(name).to_pylist() for name in partition_by]
    places: dict[tuple[object, ...], list[int]] = {}
    for number, key in enumerate(zip(*keys, strict=True) if keys else ((),) * len(rows)):
        places.setdefault(key, []).append(number)
    own = rows.drop_columns(list(partition_by))
    files = []
    for key, numbers in places.items():
        folder = "/".join(f"{name}={v}" for name, v in zip(partition_by, key, strict=True))
        files.append(write_file(root, table, folder, prefix, own.take(pa.array(numbers)), ()))
    yield file_rows(files)


def file_rows(files: Sequence[NewFile]) -> pa.RecordBatch:
    """Return rows of NEW_FILES."""
    return pa.RecordBatch.from_pylist(
        [file._asdict() for file in files], schema=arrow_schema(NEW_FILES)
    )


def new_file(table: str, path: str, size: int, metadata: pq.FileMetaData) -> NewFile:
    """Return the NewFile of an existing file."""
    return NewFile(table, path, size, metadata.num_rows, statistics(metadata))


def by_table(files: Iterable[NewFile]) -> dict[str, list[NewFile]]:
    """Group files by table, sorted by path."""
    found: dict[str, list[NewFile]] = {}
    for file in sorted(files):
        found.setdefault(file.table, []).append(file)
    return found
