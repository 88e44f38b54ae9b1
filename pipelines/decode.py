"""Records of the log to rows of one shape, an Arrow batch at a time.

Offset commits, which are nearly all there is, become columns without a step of Python's for each.
Everything else goes on as it is, under the name of what it is for, to be decoded where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow
import pyarrow.compute
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from caughtup.models.wire.consumer_offsets import GroupKey, decode_key
from caughtup.pipelines.commit_columns import COMMIT_COLUMNS, decode_commit_columns
from caughtup.pipelines.schema import OFFSETS_TOPIC

COMMIT = "commit"
GROUP = "group"
QUARANTINE = "quarantine"

#: What a record goes on as: a commit's columns, or the record itself.
_RAW = pyarrow.schema(
    [
        pyarrow.field("kind", pyarrow.string(), nullable=False),
        pyarrow.field("log_topic", pyarrow.string()),
        pyarrow.field("key", pyarrow.binary()),
        pyarrow.field("value", pyarrow.binary()),
        pyarrow.field("why", pyarrow.string()),
    ]
)
DECODED_COLUMNS = pyarrow.schema(
    [*_RAW, *(pyarrow.field(one.name, one.type) for one in COMMIT_COLUMNS)]
)
DECODED = from_arrow_schema(DECODED_COLUMNS)


def decoded(records: DataFrame, kinds: Mapping[str, str]) -> DataFrame:
    """Decode a stream's records; ``kinds`` says, by topic, what records of other topics are."""
    return records.mapInArrow(partial(_decode, dict(kinds)), DECODED)


def _decode(
    kinds: Mapping[str, str], batches: Iterable[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        for topic in sorted(pyarrow.compute.unique(batch.column("topic")).to_pylist()):
            of_topic = batch.filter(pyarrow.compute.equal(batch.column("topic"), topic))
            if topic == OFFSETS_TOPIC:
                yield from decode_offsets_batch(of_topic)
            else:
                yield _as_they_are(of_topic, kinds[topic])


def decode_offsets_batch(batch: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
    """Decode records of ``__consumer_offsets``, whose columns are topic to value of a Record."""
    found = decode_commit_columns(batch)
    if found.commits.num_rows:
        yield _rows(COMMIT, found.commits)
    keys = batch.column("key").take(pyarrow.array(found.others)).to_pylist()
    groups = [
        row
        for row, key in zip(found.others.tolist(), keys, strict=True)
        if isinstance(decode_key(key), GroupKey)
    ]
    if groups:
        yield _as_they_are(batch.take(pyarrow.array(groups)), GROUP)
    if found.undecodable:
        rows, whys = zip(*found.undecodable, strict=True)
        why = pyarrow.array(whys, pyarrow.string())
        yield _as_they_are(batch.take(pyarrow.array(rows)), QUARANTINE, why)


def _as_they_are(
    batch: pyarrow.RecordBatch, kind: str, whys: pyarrow.Array | None = None
) -> pyarrow.RecordBatch:
    given: dict[str, Any] = {
        "log_topic": batch.column("topic"),
        "key": batch.column("key"),
        "value": batch.column("value"),
        "log_partition": batch.column("partition"),
        "log_offset": batch.column("offset"),
        "record_time_ms": batch.column("timestamp_ms"),
    }
    if whys is not None:
        given["why"] = whys
    return _batch(kind, given, batch.num_rows)


def _rows(kind: str, commits: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    return _batch(kind, dict(zip(commits.schema.names, commits, strict=True)), commits.num_rows)


def _batch(kind: str, given: Mapping[str, Any], rows: int) -> pyarrow.RecordBatch:
    given = {"kind": pyarrow.array([kind] * rows, pyarrow.string()), **given}
    arrays = [
        given[field.name].cast(field.type)
        if field.name in given
        else pyarrow.nulls(rows, field.type)
        for field in DECODED_COLUMNS
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=DECODED_COLUMNS)
