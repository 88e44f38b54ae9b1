"""What a batch holds for a bucket, and what was remembered of it, to the bucket's new files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StringType

from caughtup.pipelines.history.buckets.files import NewFile, parquet_file, table_files
from caughtup.pipelines.history.buckets.lag import BucketLag
from caughtup.pipelines.history.decoding.batches import COMMITS, GROUPS, SAMPLES
from caughtup.pipelines.history.decoding.packs import unpack
from caughtup.pipelines.history.decoding.topic_columns import own_table
from caughtup.pipelines.history.decoding.topic_schema import KINDS
from caughtup.pipelines.tables import QUARANTINE, columns, timestamps

#: Packs of what was remembered, and the folders of a batch's files besides those of tables.
KNOWN = "known-"
KNOWN_COMMITS, KNOWN_ENDS = f"{KNOWN}commits", f"{KNOWN}ends"
RECORDS = "records"
NEW_FILES = columns(folder=StringType(), content=BinaryType())


def new_files(packs: DataFrame) -> DataFrame:
    """Make a row of NEW_FILES of each file; all packs of a bucket are in one of Spark's partitions."""
    return packs.mapInArrow(_new_files, NEW_FILES)


def bucket_files(bucket: int, packs: Mapping[str, Sequence[bytes]]) -> Iterator[NewFile]:
    """Return a bucket's files of a batch's packs, which are of the kinds of ``decode.packed``.

    Packs of what was remembered are of the kinds KNOWN_COMMITS and KNOWN_ENDS.
    """
    found = {kind: pa.concat_tables(map(unpack, packs[kind])) for kind in sorted(packs)}
    lag = BucketLag(*(found.get(kind) for kind in (COMMITS, SAMPLES, KNOWN_COMMITS, KNOWN_ENDS)))
    yield from lag.tables(bucket)
    yield from lag.remembered(bucket)
    for name in sorted(KINDS.keys() & found.keys()):
        yield from table_files(own_table(name), bucket, _own_rows(name, found[name]))
    if QUARANTINE.name in found:
        yield from table_files(QUARANTINE, bucket, found[QUARANTINE.name])
    if GROUPS in found:
        yield NewFile(f"{RECORDS}/{GROUPS}", parquet_file(found[GROUPS], ()))


def _new_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    packs: dict[int, dict[str, list[bytes]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            packs.setdefault(row["bucket"], {}).setdefault(row["kind"], []).append(row["data"])
    for bucket in sorted(packs):
        for file in bucket_files(bucket, packs.pop(bucket)):
            yield pa.RecordBatch.from_pylist([file._asdict()])


def _own_rows(name: str, rows: pa.Table) -> pa.Table:
    """Return rows in their table's order, with its time column."""
    of = [one for one in ("topic", "partition") if one in rows.column_names]
    names = dict.fromkeys([*KINDS[name].bucket_by, *of, "log_partition", "log_offset"])
    rows = rows.sort_by([(one, "ascending") for one in names])
    return rows.append_column("as_of", timestamps(rows.column("as_of_ms")))
