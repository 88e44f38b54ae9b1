"""The Spark side of the history: records to events, events to rows of the table.

Between Spark and Python events travel in packs (MessagePack), one for each slot, and so does the
state: thirteen columns for each event, and a call for each topic-partition, would cost more than
the work itself, and pandas makes floats of whole numbers as soon as one is missing.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
import pandas
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import StructType

from caughtup.models.ids import TopicPartition
from caughtup.pipelines import schema
from caughtup.pipelines.events import COMMIT, Event, Record, Undecodable, decode_events
from caughtup.pipelines.lag_state import LagRow, PartitionState

#: Topic-partitions are spread over this many slots, each with one piece of state. The number is
#: in every checkpoint's state: it can't change without starting a history anew.
SLOTS = 256

_encode = msgspec.msgpack.Encoder().encode
_decode_events = msgspec.msgpack.Decoder(list[Event]).decode
_decode_states = msgspec.msgpack.Decoder(list[PartitionState]).decode


def lag_history(records: DataFrame) -> DataFrame:
    """Give the rows of the table, schema.LAG_HISTORY, that a stream of records makes.

    The metrics ``commits``, ``end_offsets``, ``quarantined`` and ``sample`` are observed as
    ``decoded`` on the way.
    """
    packs = records.mapInArrow(_decode, schema.PACK).observe(
        "decoded",
        *(F.sum(name).alias(name) for name in ("commits", "end_offsets", "quarantined")),
        F.min("sample").alias("sample"),
    )
    # Not transformWithStateInPandas: that needs protobuf and RocksDB and starts slower, each look
    # at the state is a round trip to the JVM, and 4.0.0 can't read arrays in a state back.
    rows = (
        packs.where("events IS NOT NULL")
        .repartition("slot")
        .mapInArrow(_gather, schema.SLOT_EVENTS)
        .groupBy("slot")
        .applyInPandasWithState(
            _observe, schema.LAG_ROW, schema.STATE, "append", GroupStateTimeout.NoTimeout
        )
    )
    return (
        rows.withColumn("as_of", F.timestamp_millis("as_of_ms"))
        .withColumn("commit_timestamp", F.timestamp_millis("commit_time_ms"))
        .withColumn("date", F.to_date("as_of"))
        .select(*schema.LAG_HISTORY.names)
        # One task for a bucket makes one file of it.
        .repartition(schema.GROUP_BUCKETS, "group_bucket")
    )


def slot_of(partition: TopicPartition) -> int:
    """Give the slot that keeps a topic-partition's state, from 0 to SLOTS - 1."""
    return zlib.crc32(str(partition).encode()) % SLOTS


def observe_slot(saved: bytes | None, packs: Iterable[bytes]) -> tuple[bytes | None, list[LagRow]]:
    """Take the packed events of one slot: its state from then on, and the rows they make.

    The state is None when nothing is to be remembered.
    """
    by_partition: dict[TopicPartition, list[Event]] = defaultdict(list)
    for pack in packs:
        for event in _decode_events(pack):
            by_partition[TopicPartition(event.topic, event.partition)].append(event)
    states = {
        TopicPartition(state.topic, state.partition): state
        for state in (_decode_states(saved) if saved else [])
    }
    rows: list[LagRow] = []
    for partition in sorted(by_partition):
        state = states.setdefault(partition, PartitionState(*partition))
        rows.extend(state.observe(by_partition[partition]))
    kept = [states[partition] for partition in sorted(states) if not states[partition].empty]
    return _encode(kept) if kept else None, rows


def _decode(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        slots: dict[int, list[Event]] = defaultdict(list)
        undecodable: list[Undecodable] = []
        records = map(Record._make, zip(*(column.to_pylist() for column in batch), strict=True))
        for event in decode_events(records):
            if isinstance(event, Undecodable):
                undecodable.append(event)
            else:
                slots[slot_of(TopicPartition(event.topic, event.partition))].append(event)
        rows: list[tuple[object, ...]] = []
        for slot in sorted(slots):
            commits = sum(event.kind == COMMIT for event in slots[slot])
            rows.append((slot, _encode(slots[slot]), commits, len(slots[slot]) - commits, 0, None))
        if undecodable:
            rows.append((0, None, 0, 0, len(undecodable), str(undecodable[0])))
        yield from _batch(schema.PACK, rows)


def _gather(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Make one row of each slot's packs.

    With several, Spark 4.0.0 fills its table of states up with empty ones, and pyarrow 26 then
    makes floats of the row numbers in it, on which the stateful step fails.
    """
    packs: dict[int, list[bytes]] = defaultdict(list)
    for batch in batches:
        slots, events = (column.to_pylist() for column in batch.select(["slot", "events"]))
        for slot, pack in zip(slots, events, strict=True):
            packs[slot].append(pack)
    for slot in sorted(packs):
        yield from _batch(schema.SLOT_EVENTS, [(slot, packs.pop(slot))])


def _observe(
    _slot: tuple[int], chunks: Iterable[pandas.DataFrame], state: GroupState
) -> Iterator[pandas.DataFrame]:
    packs = [pack for chunk in chunks for row in chunk["packs"] for pack in row]
    saved, rows = observe_slot(state.get[0] if state.exists else None, packs)
    if saved is not None:
        state.update((saved,))
    elif state.exists:
        state.remove()
    if rows:
        # As objects: pandas would make floats of a column of whole numbers that lacks one.
        yield pandas.DataFrame(rows, columns=LagRow._fields, dtype=object)


def _batch(kind: StructType, rows: list[tuple[object, ...]]) -> Iterator[pyarrow.RecordBatch]:
    if rows:
        arrow = to_arrow_schema(kind)
        columns = zip(zip(*rows, strict=True), arrow, strict=True)
        arrays = [pyarrow.array(values, field.type) for values, field in columns]
        yield pyarrow.RecordBatch.from_arrays(arrays, schema=arrow)
