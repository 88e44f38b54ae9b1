"""Records of ``__consumer_offsets`` in either of two forms: Arrow's columns, or a broker's answer.

In an answer they are decoded where they are. Only those that are no offset commits become columns.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import Ints
from caughtup.models.polls.pending_commits import LoggedRecords
from caughtup.pipelines.history.decoding.arrow_reader import ArrowReader

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


class OffsetRecords(Protocol):
    """Records of ``__consumer_offsets``."""

    def keys(self) -> ArrowReader:
        """Return a reader of the keys."""

    def values(self) -> ArrowReader:
        """Return a reader of the values."""

    def partitions(self) -> pa.Array:
        """Return each record's partition (int32)."""

    def offsets(self) -> pa.Array:
        """Return each record's offset (int64)."""

    def times(self) -> Ints:
        """Return each record's timestamp (int64, ms since 1970)."""

    def take(self, rows: Ints) -> pa.RecordBatch:
        """Return some of the records, with the columns of RECORD_COLUMNS at least."""


class ArrowRecords(NamedTuple):
    """Records in the columns of RECORD_COLUMNS. Methods raise TypeError if a column has no bytes."""

    batch: pa.RecordBatch

    def keys(self) -> ArrowReader:
        """Return a reader of the keys."""
        return ArrowReader.of_column(self.batch.column("key"))

    def values(self) -> ArrowReader:
        """Return a reader of the values."""
        return ArrowReader.of_column(self.batch.column("value"))

    def partitions(self) -> pa.Array:
        """Return each record's partition (int32)."""
        return self.batch.column("partition").cast(pa.int32())

    def offsets(self) -> pa.Array:
        """Return each record's offset (int64)."""
        return self.batch.column("offset").cast(pa.int64())

    def times(self) -> Ints:
        """Return each record's timestamp (int64, ms since 1970)."""
        times: Ints = self.batch.column("timestamp_ms").cast(pa.int64()).to_numpy()
        return times

    def take(self, rows: Ints) -> pa.RecordBatch:
        """Return some of the records."""
        batch = self.batch
        for name in ("key", "value"):
            if pa.types.is_binary_view(batch.schema.field(name).type):  # Arrow cannot take from it
                place = batch.schema.get_field_index(name)
                batch = batch.set_column(place, name, batch.column(place).cast(pa.binary()))
        return batch.take(pa.array(rows))


class AnswerRecords(NamedTuple):
    """Records of a partition in a broker's answer, with their timestamps."""

    partition: TopicPartition
    logged: LoggedRecords

    @property
    def rows(self) -> int:
        """The number of records."""
        return len(self.logged.records)

    @property
    def size(self) -> int:
        """The bytes of keys and values, about."""
        _, key_end, _, value_end = self.logged.records.columns()
        ends = max(int(key_end.max(initial=0)), int(value_end.max(initial=0)))
        return ends - max(0, int(self.logged.records.key_start.min(initial=ends)))

    def keys(self) -> ArrowReader:
        """Return a reader of the keys."""
        records = self.logged.records
        return ArrowReader.of_pieces(records.data, records.key_start, records.key_end)

    def values(self) -> ArrowReader:
        """Return a reader of the values."""
        records = self.logged.records
        return ArrowReader.of_pieces(records.data, records.value_start, records.value_end)

    def partitions(self) -> pa.Array:
        """Return each record's partition (int32)."""
        return pa.repeat(pa.scalar(self.partition.partition, pa.int32()), self.rows)

    def offsets(self) -> pa.Array:
        """Return each record's offset (int64)."""
        return pa.array(self.logged.offset)

    def times(self) -> Ints:
        """Return each record's timestamp (int64, ms since 1970)."""
        assert self.logged.time is not None
        return self.logged.time

    def take(self, rows: Ints) -> pa.RecordBatch:
        """Return some of the records, copied, in RECORD_COLUMNS."""
        of = AnswerRecords(self.partition, self.logged.select(rows))
        return record_batch(
            self.partition,
            of.offsets(),
            pa.array(of.times()),
            of.keys().column(),
            of.values().column(),
        )

    def to_batch(self) -> pa.RecordBatch:
        """Return all of the records, copied, in RECORD_COLUMNS."""
        return self.take(np.arange(self.rows))


def record_batch(
    partition: TopicPartition, offset: pa.Array, time: pa.Array, key: pa.Array, value: pa.Array
) -> pa.RecordBatch:
    """Return records of a partition in RECORD_COLUMNS."""
    count = len(offset)
    topic = pa.repeat(pa.scalar(partition.topic), count)
    number = pa.repeat(pa.scalar(partition.partition, pa.int32()), count)
    arrays = [topic, number, offset, time, key, value]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD_COLUMNS)
