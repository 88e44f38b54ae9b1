"""Raw records of ``__consumer_offsets``: read them from brokers, write them as Parquet.

The files have the columns of Spark's Kafka source, so that a job can read either.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow
import pyarrow.parquet
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.fleet.offset_commits import RawRecord
from caughtup.models.errors import CaughtupError
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

#: The columns of a file of raw records; ``timestamp_ms`` since 1970.
SCHEMA = pyarrow.schema(
    [
        pyarrow.field("topic", pyarrow.string(), nullable=False),
        pyarrow.field("partition", pyarrow.int32(), nullable=False),
        pyarrow.field("offset", pyarrow.int64(), nullable=False),
        pyarrow.field("timestamp_ms", pyarrow.int64(), nullable=False),
        pyarrow.field("key", pyarrow.binary()),
        pyarrow.field("value", pyarrow.binary()),
    ]
)
#: The records in memory before they are written, and those of a file: a task reads one or a few.
_ROWS_HELD = 65_536
_ROWS_A_FILE = 2_000_000
_AT_ONCE = 10_000
_SECONDS = 60.0


class RawRecordFiles:
    """Writes records into files ``generated-records-00000.parquet``, … of a new directory.

    A context manager. It keeps at most some ten thousand records in memory. Raises CaughtupError
    ``output_exists`` or ``output_failed``.
    """

    def __init__(self, directory: Path, rows_a_file: int = _ROWS_A_FILE) -> None:
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            raise CaughtupError("output_exists", f"{directory} is there already") from None
        except OSError as error:
            raise _failed(directory, error) from error
        self._directory = directory
        self._rows_a_file = rows_a_file
        self._held: list[RawRecord] = []
        self._writer: pyarrow.parquet.ParquetWriter | None = None
        self._files = self._in_file = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self._write()
        if self._writer is not None:
            self._writer.close()

    def add(self, records: Iterable[RawRecord]) -> None:
        """Add records."""
        self._held.extend(records)
        if len(self._held) >= _ROWS_HELD:
            self._write()

    def _write(self) -> None:
        if not self._held:
            return
        columns = [[CONSUMER_OFFSETS] * len(self._held), *zip(*self._held, strict=True)]
        arrays = [
            pyarrow.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)
        ]
        try:
            self._file().write_table(pyarrow.Table.from_arrays(arrays, schema=SCHEMA))
        except OSError as error:
            raise _failed(self._directory, error) from error
        self._in_file += len(self._held)
        self._held = []

    def _file(self) -> pyarrow.parquet.ParquetWriter:
        if self._writer is not None and self._in_file >= self._rows_a_file:
            self._writer.close()
            self._writer = None
        if self._writer is None:
            path = self._directory / f"generated-records-{self._files:05}.parquet"
            self._writer = pyarrow.parquet.ParquetWriter(path, SCHEMA, compression="zstd")
            self._files += 1
            self._in_file = 0
        return self._writer


def read_back(cluster: EmbeddedCluster, topic: str = CONSUMER_OFFSETS) -> Iterator[list[RawRecord]]:
    """Read a topic to its present end; yield some thousands of records at a time.

    Raises CaughtupError ``read_failed``.
    """
    consumer = Consumer(
        {
            **cluster.client_config(),
            "group.id": "generated-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        left = set(consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in sorted(left)])
        deadline = time.monotonic() + _SECONDS
        while left:
            records = []
            for message in consumer.consume(_AT_ONCE, 1.0):
                error = message.error()
                if error is None:
                    records.append(_raw(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise KafkaException(error)
            if records:
                deadline = time.monotonic() + _SECONDS
                yield records
            elif time.monotonic() > deadline:
                raise CaughtupError("read_failed", f"{topic} has an end that never comes")
    except KafkaException as error:
        raise CaughtupError("read_failed", f"{topic}: {error.args[0].str()}") from error
    finally:
        consumer.close()


def _raw(message: Message) -> RawRecord:
    partition, offset, (_, at_ms) = message.partition(), message.offset(), message.timestamp()
    # Only messages that are not sent yet lack these.
    assert partition is not None
    assert offset is not None
    return RawRecord(partition, offset, at_ms, message.key(), message.value())


def _failed(directory: Path, error: OSError) -> CaughtupError:
    return CaughtupError("output_failed", f"cannot write {directory}: {error.strerror or error}")
