"""The Spark stages of catch-up rates: decode records to events, and compute rates with state.

Events and state move between Spark and Python as packs (MessagePack), one for each slot: a column
for each field and a call for each copy would cost more than the computation.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
import pandas
import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.rates.slots import (
    FORGOTTEN_MS,
    Event,
    OutputRecord,
    Slot,
    SlotState,
    decode,
    slot_of,
)
from caughtup.pipelines.spark.arrow import arrow_schema

#: Packed events of one slot, with the newest time of one; or counts of malformed records.
_PACK = StructType(
    [
        StructField("slot", IntegerType(), nullable=False),
        StructField("events", BinaryType()),
        StructField("count", LongType(), nullable=False),
        StructField("newest_ms", LongType(), nullable=False),
        StructField("quarantined", LongType(), nullable=False),
        StructField("sample", StringType()),
    ]
)
#: All packs of a slot in a trigger.
_SLOT_EVENTS = StructType(
    [
        StructField("slot", IntegerType(), nullable=False),
        StructField("packs", ArrayType(BinaryType()), nullable=False),
        StructField("newest_ms", LongType(), nullable=False),
    ]
)
_STATE = StructType([StructField("state", BinaryType())])
#: The columns that Spark's Kafka sink writes.
_OUTPUT = StructType(
    [StructField("key", BinaryType(), nullable=False), StructField("value", BinaryType())]
)

_encode = msgspec.msgpack.Encoder().encode
_decode_events = msgspec.msgpack.Decoder(list[Event]).decode
_decode_state = msgspec.msgpack.Decoder(SlotState).decode


def rate_records(records: DataFrame, positions_topic: str, trigger_seconds: float) -> DataFrame:
    """Return the output records (key and value) for a stream of reports and end offsets.

    ``records`` has the columns of ``KafkaRecord``; those of ``positions_topic`` are reports. The
    metrics ``events``, ``quarantined`` and ``sample`` are observed as ``decoded``. Time is that of
    the events; copies and partitions without events for half an hour are forgotten.
    """
    packs = records.mapInArrow(
        functools.partial(_decode, positions_topic=positions_topic), _PACK
    ).observe(
        "decoded",
        F.sum("count").alias("events"),
        F.sum("quarantined").alias("quarantined"),
        F.min("sample").alias("sample"),
    )
    # Not transformWithStateInPandas: it needs protobuf and RocksDB, starts more slowly, and in
    # 4.0.0 cannot read arrays in a state back.
    return (
        packs.where("events IS NOT NULL")
        .repartition("slot")
        .mapInArrow(_gather, _SLOT_EVENTS)
        .withColumn("newest", F.timestamp_millis("newest_ms"))
        .withWatermark("newest", f"{FORGOTTEN_MS} milliseconds")
        .groupBy("slot")
        .applyInPandasWithState(
            functools.partial(_observe, trigger_seconds=trigger_seconds),
            _OUTPUT,
            _STATE,
            "append",
            GroupStateTimeout.EventTimeTimeout,
        )
    )


def _decode(
    batches: Iterable[pyarrow.RecordBatch], positions_topic: str
) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        slots: dict[int, list[Event]] = defaultdict(list)
        skipped = []
        for fields in zip(*(column.to_pylist() for column in batch), strict=True):
            try:
                event = decode(KafkaRecord(*fields), positions_topic)
            except CaughtupError as error:
                skipped.append(error.message)
                continue
            if event is not None:
                slots[slot_of(event)].append(event)
        rows: list[tuple[object, ...]] = []
        for slot, events in sorted(slots.items()):
            newest_ms = max(event.at_ms for event in events)
            rows.append((slot, _encode(events), len(events), newest_ms, 0, None))
        if skipped:
            rows.append((0, None, 0, 0, len(skipped), skipped[0]))
        yield from _batch(_PACK, rows)


def _gather(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Combine each slot's packs into one row.

    With several rows, Spark 4.0.0 pads its table of states with empty ones; pyarrow 26 then converts
    the row numbers in it to floats, on which the stateful step fails.
    """
    packs: dict[int, list[bytes]] = defaultdict(list)
    newest: dict[int, int] = defaultdict(int)
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("slot", "events", "newest_ms"))
        for slot, events, newest_ms in zip(*columns, strict=True):
            packs[slot].append(events)
            newest[slot] = max(newest[slot], newest_ms)
    for slot in sorted(packs):
        yield from _batch(_SLOT_EVENTS, [(slot, packs.pop(slot), newest[slot])])


def _observe(
    _slot: tuple[int],
    chunks: Iterable[pandas.DataFrame],
    state: GroupState,
    trigger_seconds: float,
) -> Iterator[pandas.DataFrame]:
    saved = _decode_state(state.get[0]) if state.exists else SlotState()
    slot = Slot(saved, trigger_seconds)
    watermark_ms = state.getCurrentWatermarkMs()
    if state.hasTimedOut:
        outputs = list(slot.forget(watermark_ms))
    else:
        packs = [pack for chunk in chunks for row in chunk["packs"] for pack in row]
        events = [event for pack in packs for event in _decode_events(pack)]
        outputs = list(slot.apply(events, watermark_ms))
    if slot.state is not None:
        state.update((_encode(slot.state),))
        # Spark refuses a time-out that its watermark has passed already.
        state.setTimeoutTimestamp(max(slot.oldest_ms, watermark_ms) + 1)
    elif state.exists:
        state.remove()
    if outputs:
        yield pandas.DataFrame(outputs, columns=OutputRecord._fields, dtype=object)


def _batch(kind: StructType, rows: list[tuple[object, ...]]) -> Iterator[pyarrow.RecordBatch]:
    if rows:
        arrow = arrow_schema(kind)
        columns = zip(zip(*rows, strict=True), arrow, strict=True)
        arrays = [pyarrow.array(values, field.type) for values, field in columns]
        yield pyarrow.RecordBatch.from_arrays(arrays, schema=arrow)
