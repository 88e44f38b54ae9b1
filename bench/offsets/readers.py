"""Read ``__consumer_offsets`` with client libraries alone: the yardsticks of the reading rate.

Each reads all keys and values with the properties that suit it, and drops them without decoding, in
a process of its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from caughtup.agents.errors import UserError
from caughtup.agents.offsets.reader import rare_collections
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

#: The properties with which librdkafka is fastest: large runs of one partition's records.
CONSUMER: dict[str, object] = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 200,
    "fetch.message.max.bytes": 4 << 20,
    "queued.max.messages.kbytes": 16 << 10,
    # By default fetching pauses for a second whenever the queue is full.
    "fetch.queue.backoff.ms": 1,
}
#: The messages of one call: few enough to stay in the processor's cache until they are dropped,
#: which is a third faster than a whole poll.
SLICE_MESSAGES = 2_000
_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.5
_SILENT_SECONDS = 5.0

_MEMORY = re.compile(r"^(VmHWM|VmRSS):\s+(\d+) kB$", re.MULTILINE)

Reader = Callable[[str, int], tuple[int, float]]


def read_alone(reader: Reader, bootstrap_servers: str, partitions: int) -> dict[str, float]:
    """Measure a library's reading of ``__consumer_offsets``, in a process of its own.

    Raises UserError when it fails.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_measure, args=(reader, bootstrap_servers, partitions, theirs))
    process.start()
    theirs.close()
    try:
        figures: dict[str, float] = ours.recv()
    except EOFError:
        raise UserError("a client library that was to read alone failed") from None
    finally:
        process.join()
    return figures


def _measure(reader: Reader, bootstrap_servers: str, partitions: int, results: Connection) -> None:
    try:
        with rare_collections():
            records, seconds = reader(bootstrap_servers, partitions)
        results.send({"records_per_second": records / seconds, **process_figures(os.getpid())})
    finally:
        results.close()


def read_with_confluent_kafka(bootstrap_servers: str, partitions: int) -> tuple[int, float]:
    """Read everything with librdkafka; return the number of records, and the seconds."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "bench", **CONSUMER})
    try:
        consumer.list_topics(CONSUMER_OFFSETS, timeout=_TIMEOUT_SECONDS)
        assigned = [
            TopicPartition(CONSUMER_OFFSETS, p, OFFSET_BEGINNING) for p in range(partitions)
        ]
        ends = [consumer.get_watermark_offsets(p, _TIMEOUT_SECONDS)[1] for p in assigned]
        began, records = time.monotonic(), 0
        consumer.assign(assigned)
        received, before = began, 0
        while any(p.offset < end for p, end in zip(consumer.position(assigned), ends, strict=True)):
            for messages in iter(lambda: consumer.consume(SLICE_MESSAGES, 0), []):
                records += len(messages)
            records += len(consumer.consume(1, _POLL_SECONDS))
            if records > before:
                received, before = time.monotonic(), records
            elif records and time.monotonic() - received > _SILENT_SECONDS:
                # The log ends with transaction markers, which the position never passes.
                return records, received - began
        return records, time.monotonic() - began
    finally:
        consumer.close()


def read_with_aiokafka(bootstrap_servers: str, partitions: int) -> tuple[int, float]:
    """Read everything with aiokafka; return the number of records, and the seconds."""
    return asyncio.run(_read_with_aiokafka(bootstrap_servers, partitions))


async def _read_with_aiokafka(bootstrap_servers: str, partitions: int) -> tuple[int, float]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=CONSUMER["fetch.message.max.bytes"],
    )
    await consumer.start()
    try:
        assigned = [AioTopicPartition(CONSUMER_OFFSETS, p) for p in range(partitions)]
        consumer.assign(assigned)
        await consumer.seek_to_beginning(*assigned)
        ends = await consumer.end_offsets(assigned)
        began, records = time.monotonic(), 0
        while any([await consumer.position(p) < end for p, end in ends.items()]):
            polled = await consumer.getmany(timeout_ms=500, max_records=20_000)
            records += sum(map(len, polled.values()))
        return records, time.monotonic() - began
    finally:
        await consumer.stop()


def process_figures(pid: int) -> dict[str, float]:
    """Return a process's CPU seconds, and its memory in bytes: now, and at peak."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    memory = {name: int(kilobytes) for name, kilobytes in _MEMORY.findall(status)}
    return {
        "cpu_seconds": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        "peak_bytes": memory["VmHWM"] * 1024,
        "resident_bytes": memory["VmRSS"] * 1024,
    }
