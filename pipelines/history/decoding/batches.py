"""Decode Kafka records, an Arrow batch at a time, into packs of columns for the buckets.

Offset commits, which are nearly all records, are decoded by columns. A record that cannot be
decoded becomes a row of quarantine, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from caughtup.models.wire.consumer_offsets import GroupKey, decode_key
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.history.decoding.commit_columns import decode_commit_columns
from caughtup.pipelines.history.decoding.packs import (
    PACKED,
    by_bucket,
    first_of,
    pack,
    packed_rows,
    with_names,
)
from caughtup.pipelines.history.decoding.topic_columns import END_OFFSETS, own_columns
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from caughtup.pipelines.tables import QUARANTINE, timestamps

COMMITS = "commits"
#: End offsets again, for the computation of lag in every bucket: any group may read any topic.
SAMPLES = "samples"
GROUPS = "groups"
SAMPLE_COLUMNS = (
    *("topic", "partition", "present", "start_offset", "last_stable_offset"),
    *("end_offset", "readable_end_offset", "as_of_ms", "log_offset"),
)
#: The columns of caughtup.pipelines.events.KafkaRecord.
RECORD_COLUMNS = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp_ms", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)
_EVERY = -1
#: The rows, or bytes of records, that are packed together: more need fewer values, and more memory.
_ROWS = 1 << 17
_BYTES = 64 << 20
_KindRows = tuple[str, pa.RecordBatch]


def packed(records: DataFrame, kinds: Mapping[str, str], buckets: int) -> DataFrame:
    """Decode a stream's records to rows of PACKED; ``kinds``: the table of each own topic."""
    return records.mapInArrow(partial(pack_records, dict(kinds), buckets), PACKED)


def pack_records(
    kinds: Mapping[str, str], buckets: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Decode and pack Arrow batches of records: the function that ``packed`` maps."""
    held: dict[tuple[str, int], list[pa.RecordBatch]] = {}
    rows = size = 0
    for batch in batches:
        for kind, part in decoded(kinds, batch):
            for bucket, own in _to_buckets(kind, part, buckets):
                held.setdefault((kind, bucket), []).append(own)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield from _packs(held, buckets)
            held, rows, size = {}, 0, 0
    yield from _packs(held, buckets)


def decoded(kinds: Mapping[str, str], batch: pa.RecordBatch) -> Iterator[_KindRows]:
    """Decode a batch; yield the columns of each kind with its name."""
    topics = pc.unique(batch.column("topic")).to_pylist()
    for topic in sorted(topics):
        of_topic = batch
        if len(topics) > 1:
            of_topic = batch.filter(pc.equal(batch.column("topic"), topic))
        if topic == CONSUMER_OFFSETS:
            yield from _offsets(of_topic)
        else:
            yield from _own(kinds[topic], of_topic)


def quarantine(batch: pa.RecordBatch, whys: list[str], until: list[int] | None = None) -> _KindRows:
    """Return rows of quarantine for records, or for ranges of a log up to ``until`` each."""
    seen = pa.array([int(time.time() * 1000)] * len(batch), pa.int64())
    given = {
        "seen": timestamps(seen),
        "topic": batch.column("topic"),
        "log_partition": batch.column("partition"),
        "log_offset": batch.column("offset"),
        "until_offset": pa.nulls(len(batch), pa.int64()) if until is None else pa.array(until),
        "record_timestamp": timestamps(batch.column("timestamp_ms")),
        "key": batch.column("key"),
        "value": batch.column("value"),
        "why": pa.array(whys, pa.string()),
    }
    schema = _quarantine_schema()
    arrays = [given[field.name].cast(field.type) for field in schema]
    return QUARANTINE.name, pa.RecordBatch.from_arrays(arrays, schema=schema)


def _offsets(batch: pa.RecordBatch) -> Iterator[_KindRows]:
    found = decode_commit_columns(batch)
    if found.commits.num_rows:
        yield COMMITS, with_names(found.commits)
    keys = batch.column("key").take(pa.array(found.others)).to_pylist()
    groups = [
        row
        for row, key in zip(found.others.tolist(), keys, strict=True)
        if isinstance(decode_key(key), GroupKey)
    ]
    if groups:
        names = ["partition", "offset", "timestamp_ms", "key", "value"]
        yield GROUPS, batch.take(pa.array(groups)).select(names)
    if found.undecodable:
        rows, whys = zip(*found.undecodable, strict=True)
        yield quarantine(batch.take(pa.array(rows)), list(whys))


def _own(name: str, batch: pa.RecordBatch) -> Iterator[_KindRows]:
    found = own_columns(name, batch)
    if found.rows.num_rows:
        yield name, found.rows
        if name == END_OFFSETS:
            yield SAMPLES, with_names(found.rows.select(list(SAMPLE_COLUMNS)))
    if found.undecodable:
        records, whys = zip(*found.undecodable, strict=True)
        columns = dict(zip(batch.schema.names, zip(*records, strict=True), strict=True))
        broken = pa.RecordBatch.from_pydict(columns, schema=batch.schema)
        yield quarantine(broken, list(whys))


def _to_buckets(
    kind: str, part: pa.RecordBatch, buckets: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    if kind == SAMPLES:
        return iter([(_EVERY, part)])
    if kind == GROUPS:
        return iter([(0, part)])
    if kind in TOPIC_TABLES:
        names = first_of(part.column(name) for name in TOPIC_TABLES[kind].bucket_by)
    else:
        names = part.column("group" if kind == COMMITS else "topic")
    return by_bucket(part, names, buckets)


def _packs(
    held: Mapping[tuple[str, int], list[pa.RecordBatch]], buckets: int
) -> Iterator[pa.RecordBatch]:
    for (kind, bucket), parts in sorted(held.items(), key=lambda item: item[0]):
        data = pack(parts)
        wanted = range(buckets) if bucket == _EVERY else (bucket,)
        yield packed_rows(kind, [(number, data) for number in wanted])


@cache
def _quarantine_schema() -> pa.Schema:
    return to_arrow_schema(QUARANTINE.columns)
