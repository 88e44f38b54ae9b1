"""A batch that one task reads and writes, beside the same batch read by several tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from caughtup.agents.kafka.protocol.fetch_answer import plain_batch
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import LogRange, LogRecords, Section, decode_log
from caughtup.models.wire.consumer_offsets import OffsetKey
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.delta.files import NewFile, by_table
from caughtup.pipelines.history.buckets.lag import STATE
from caughtup.pipelines.history.buckets.tables import BucketTask, write_packs, write_ranges
from caughtup.pipelines.history.decoding.log_ranges import RangeTasks, range_tasks
from caughtup.pipelines.history.tables import HistoryTables
from tests.support.groups import streams
from tests.support.pipelines.commit_batches import NOW_MS, commit, record
from tests.support.pipelines.delta import new_tables, rows_of
from tests.support.pipelines.end_offsets import ENDS, TOPIC_TABLES, end_offsets
from tests.support.record_batches import LoggedRecord, record_batch

SEED, RECORDS, PARTITIONS, BUCKETS = 3, 400, 5, 4
ENDS_LOG = TopicPartition(ENDS, 0)


class Count:
    """An accumulator without Spark."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, more: int) -> None:
        self.value += more


class Logs:
    """Reads ranges of logs that are in memory."""

    def __init__(self, batches: dict[TopicPartition, list[bytes]]) -> None:
        self.data = {partition: b"".join(parts) for partition, parts in batches.items()}

    def __call__(
        self, ranges: Iterable[tuple[LogRange, PendingCommits]]
    ) -> Iterator[tuple[TopicPartition, LogRecords]]:
        for one, pending in ranges:
            if one.until > one.start:
                data = self.data[one.partition]
                section = Section(0, len(data), one.start, pending)
                yield one.partition, decode_log(data, section, plain_batch, one.until)


@pytest.fixture
def logs() -> Logs:
    """Commits, in and out of open transactions, a group's record, looks, and what is broken."""
    drawn = Random(SEED)
    batches: dict[TopicPartition, list[bytes]] = {}
    offsets: dict[TopicPartition, int] = {}

    def write(partition: TopicPartition, key: bytes | None, value: bytes | None, producer: int):
        at = offsets.get(partition, 0)
        offsets[partition] = at + 1
        raw = record_batch(
            [LoggedRecord(at, key, value, NOW_MS + at)],
            producer_id=producer,
            transactional=producer >= 0,
        )
        batches.setdefault(partition, []).append(raw)

    for number in range(RECORDS):
        group = drawn.randrange(20)
        key = OffsetKey(f"group-{group}", "orders", drawn.randrange(3))
        made = commit(key=key, offset=number, commit_timestamp_ms=NOW_MS + number)
        home = TopicPartition(CONSUMER_OFFSETS, group % PARTITIONS)
        write(home, made.key, made.value, 7 if number > RECORDS - 9 else -1)
        if number % 50 == 0:
            broken = record(b"\x00\x01\x00\x09short", b"")
            write(home, broken.key, broken.value, -1)
            look = end_offsets("orders", 0, end_offset=number + 9, as_of_ms=NOW_MS + number)
            write(ENDS_LOG, look.key, look.value, -1)
    key, value = streams.generation(7, *streams.WARMING, at_ms=NOW_MS)
    write(TopicPartition(CONSUMER_OFFSETS, 0), key, value, -1)
    return Logs(batches)


def tasks_of(logs: Logs, start: int, until: int, most: int, rows: Count) -> RangeTasks:
    ranges = [LogRange(partition, start, until) for partition in sorted(logs.data)]
    return range_tasks(logs, ranges, {}, most, TOPIC_TABLES, BUCKETS, rows)  # type: ignore[arg-type]


def numbers(count: int) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"id": pa.array(range(count), pa.int64())})]


def finish(tables: HistoryTables, batch: int, made: Iterable[pa.RecordBatch]) -> None:
    new = by_table(NewFile(**row) for few in made for row in few.to_pylist())
    left = new.pop(STATE)
    tables.add(batch, new)
    tables.finish(batch, left, [], f"digest-{batch}")


def written(root: Path) -> dict[str, list[dict[str, Any]]]:
    names = ("commits", "lag", "rebalances", "end_offsets", "quarantine", STATE)
    found = {name: rows_of(root, name) for name in names}
    for row in found["quarantine"]:
        del row["seen"]
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def test_one_task_writes_what_several_write(
    logs: Logs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caughtup.pipelines.history.decoding.log_ranges._OFFSETS_A_TASK", 1)
    alone, together = tmp_path / "alone", tmp_path / "together"
    for root, most in ((alone, 1), (together, 3)):
        tables, counts = new_tables(root), []
        for batch, (start, until) in enumerate(((0, 40), (40, 1 << 40))):
            known = tuple(tables.state.paths("commits", "ends", "rebalances", "topics"))
            task = BucketTask(tables.root, batch, BUCKETS, known, rebucket=False)
            rows = Count()
            tasks = tasks_of(logs, start, until, most, rows)
            assert len(tasks.tasks) == most
            if most == 1:
                made = list(write_ranges(task, tasks, numbers(1)))
            else:
                made = list(write_packs(task, list(tasks.packs(numbers(most)))))
            counts.append(rows.value)
            finish(tables, batch, made)
        assert sum(counts) > RECORDS - 9, "what is in an open transaction does not count yet"
    found, expected = written(alone), written(together)
    assert found.keys() == expected.keys()
    for name, rows in expected.items():
        assert rows, f"{name} has rows"
        assert found[name] == rows, name
