"""Decode Kafka records, an Arrow batch at a time, into packs of columns for the buckets.

Offset commits, which are nearly all records, are decoded by columns. A record that cannot be
decoded becomes a row of quarantine, with the reason. A pack is many rows as one binary value, in
Arrow's stream format or as a Parquet file of the state: moving it between Spark's workers costs a
fraction of moving each row's fields.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, StringType

from caughtup.models.wire.consumer_offsets import GroupKey, decode_key
from caughtup.models.wire.record_keys import (
    CONSUMER_OFFSETS,
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.pipelines.history.decoding.commit_columns import NAMES, decode_commits
from caughtup.pipelines.history.decoding.log_records import (
    AnswerRecords,
    ArrowRecords,
    OffsetRecords,
)
from caughtup.pipelines.history.decoding.topic_columns import END_OFFSETS, own_columns
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from caughtup.pipelines.schema import bucket
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.tables import QUARANTINE, columns, timestamps

#: The kind of a pack's rows, the bucket that it is for, and the pack.
PACKED = columns(kind=StringType(), bucket=IntegerType(), data=BinaryType())
_ARROW = pa.schema([("kind", pa.string()), ("bucket", pa.int32()), ("data", pa.binary())])
_WRITING = pa.ipc.IpcWriteOptions(compression="lz4")
_PARQUET = b"PAR1"
_NAMED = ("group", "topic")
_OF_RECORDS = ["partition", "offset", "timestamp_ms", "key", "value"]
_GROUP_KEYS = (
    GroupKey,
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
_TOPIC_ID = r'"topic_id":\s*"(?P<id>[0-9a-f]{32})"'


#: A pack, or in the process that made it the rows themselves.
Pack: TypeAlias = bytes | pa.RecordBatch


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


def unpack(data: Pack) -> pa.Table:
    """Return a pack's rows; columns of names have the type NAMES."""
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
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
    counts = np.bincount(of_row, minlength=buckets)
    if counts.max() < len(rows):
        # Numbers of 8 bits are sorted in one pass.
        rows = rows.take(pa.array(np.argsort(of_row.astype(np.uint8), kind="stable")))
    at = 0
    for number in np.flatnonzero(counts).tolist():
        count = counts.item(number)
        yield number, rows.slice(at, count)
        at += count


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


COMMITS = "commits"
#: End offsets again, for the computation of lag in every bucket: any group may read any topic.
SAMPLES = "samples"
GROUPS = "groups"
#: The records of groups on every protocol but commits, and such as the history doesn't have rows for
#: since they are from before: of each with the group's name.
OF_GROUPS, OF_GROUPS_BEFORE = "of-groups", "of-groups-before"
#: Topics' ids, from looks at end offsets: assignments of consumer groups (KIP-848) have nothing else.
TOPIC_IDS = "topic-ids"
SAMPLE_COLUMNS = (
    *("topic", "partition", "present", "start_offset", "last_stable_offset"),
    *("end_offset", "readable_end_offset", "as_of_ms", "log_offset"),
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
    kinds: Mapping[str, str], buckets: int, batches: Iterable[pa.RecordBatch | AnswerRecords]
) -> Iterator[pa.RecordBatch]:
    """Decode and pack batches of records: the function that ``packed`` maps."""
    held: dict[tuple[str, int], list[pa.RecordBatch]] = {}
    rows = size = 0
    for batch in batches:
        for kind, part in decoded(kinds, batch):
            for number, own in _to_buckets(kind, part, buckets):
                held.setdefault((kind, number), []).append(own)
        if isinstance(batch, AnswerRecords):
            rows, size = rows + batch.rows, size + batch.size
        else:
            rows, size = rows + len(batch), size + batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield from _packs(held, buckets)
            held, rows, size = {}, 0, 0
    yield from _packs(held, buckets)


def rows_by_bucket(
    kinds: Mapping[str, str], buckets: int, batches: Iterable[pa.RecordBatch | AnswerRecords]
) -> dict[int, dict[str, list[Pack]]]:
    """Decode batches of records; return the rows of each bucket by kind, in their order."""
    found: dict[int, dict[str, list[Pack]]] = {}
    for batch in batches:
        for kind, part in decoded(kinds, batch):
            for number, own in _to_buckets(kind, part, buckets):
                for one in range(buckets) if number == _EVERY else (number,):
                    found.setdefault(one, {}).setdefault(kind, []).append(own)
    return found


def decoded(kinds: Mapping[str, str], batch: pa.RecordBatch | AnswerRecords) -> Iterator[_KindRows]:
    """Decode a batch; yield the columns of each kind with its name."""
    if isinstance(batch, AnswerRecords):
        if batch.partition.topic == CONSUMER_OFFSETS:
            yield from _offsets(batch)
            return
        batch = batch.to_batch()
    topics = pc.unique(batch.column("topic")).to_pylist()
    for topic in sorted(topics):
        of_topic = batch
        if len(topics) > 1:
            of_topic = batch.filter(pc.equal(batch.column("topic"), topic))
        if topic == CONSUMER_OFFSETS:
            yield from _offsets(ArrowRecords(of_topic))
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


def _offsets(records: OffsetRecords) -> Iterator[_KindRows]:
    found = decode_commits(records)
    if found.commits.num_rows:
        yield COMMITS, found.commits
    if len(found.others):
        others = records.take(found.others)
        keys = [decode_key(key) for key in others.column("key").to_pylist()]
        groups = [row for row, key in enumerate(keys) if isinstance(key, GroupKey)]
        if groups:
            yield GROUPS, others.take(pa.array(groups)).select(_OF_RECORDS)
        named = {row: key.group for row, key in enumerate(keys) if isinstance(key, _GROUP_KEYS)}
        if named:
            of_groups = others.take(pa.array(list(named))).select(_OF_RECORDS)
            yield OF_GROUPS, with_groups(of_groups, list(named.values()))
    if found.undecodable:
        rows, whys = zip(*found.undecodable, strict=True)
        yield quarantine(records.take(np.array(rows, np.int64)), list(whys))


def with_groups(records: pa.RecordBatch, groups: Sequence[str]) -> pa.RecordBatch:
    """Add the column ``group`` to records of groups."""
    return records.append_column("group", pa.array(groups, pa.string()))


def pack_records_before(
    buckets: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Decode and pack records from before the history as OF_GROUPS_BEFORE, and nothing else."""
    for batch in batches:
        for kind, rows in _offsets(ArrowRecords(batch)):
            if kind == OF_GROUPS:
                for number, own in _to_buckets(kind, rows, buckets):
                    yield packed_rows(OF_GROUPS_BEFORE, [(number, pack([own]))])


def _topic_ids(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the topics' ids in looks at end offsets, each once; no column of their table has them."""
    found = pc.extract_regex(rows.column("record"), _TOPIC_ID)
    known = found.is_valid()
    topics, ids = (each.filter(known).to_pylist() for each in (rows.column("topic"), found))
    named = dict.fromkeys(zip(topics, (one["id"] for one in ids), strict=True))
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([topic for topic, _ in named], pa.string()),
            "topic_id": pa.array([bytes.fromhex(one) for _, one in named], pa.binary()),
        }
    )


def _own(name: str, batch: pa.RecordBatch) -> Iterator[_KindRows]:
    found = own_columns(name, batch)
    if found.rows.num_rows:
        yield name, found.rows
        if name == END_OFFSETS:
            yield SAMPLES, with_names(found.rows.select(list(SAMPLE_COLUMNS)))
            if (ids := _topic_ids(found.rows)).num_rows:
                yield TOPIC_IDS, ids
    if found.undecodable:
        records, whys = zip(*found.undecodable, strict=True)
        columns = dict(zip(batch.schema.names, zip(*records, strict=True), strict=True))
        broken = pa.RecordBatch.from_pydict(columns, schema=batch.schema)
        yield quarantine(broken, list(whys))


def _to_buckets(
    kind: str, part: pa.RecordBatch, buckets: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    if kind in {SAMPLES, TOPIC_IDS}:
        return iter([(_EVERY, part)])
    if kind == GROUPS:
        return iter([(0, part)])
    if kind in TOPIC_TABLES:
        names = first_of(part.column(name) for name in TOPIC_TABLES[kind].bucket_by)
    else:
        names = part.column("group" if kind in {COMMITS, OF_GROUPS} else "topic")
    return by_bucket(part, names, buckets)


def _packs(
    held: Mapping[tuple[str, int], list[pa.RecordBatch]], buckets: int
) -> Iterator[pa.RecordBatch]:
    for (kind, number), parts in sorted(held.items(), key=lambda item: item[0]):
        data = pack(parts)
        wanted = range(buckets) if number == _EVERY else (number,)
        yield packed_rows(kind, [(number, data) for number in wanted])


@cache
def _quarantine_schema() -> pa.Schema:
    return arrow_schema(QUARANTINE.columns)
