"""A history's batches without Spark and Kafka, all in one thread."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from caughtup.models.wire.consumer_offsets import OffsetKey
from caughtup.pipelines.delta.files import NewFile, by_table, partition_of
from caughtup.pipelines.delta.store import store_of
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.history.buckets.generations import MEMORIES
from caughtup.pipelines.history.buckets.lag import STATE
from caughtup.pipelines.history.buckets.tables import OF_BUCKETS, BucketTask, write_packs
from caughtup.pipelines.history.decoding.batches import pack_records
from caughtup.pipelines.history.tables import HistoryTables
from tests.support.pipelines.commit_batches import NOW_MS, batch_of, commit
from tests.support.pipelines.delta import new_tables
from tests.support.pipelines.end_offsets import TOPIC_TABLES, end_offsets

GROUPS = ("billing", "orders", "shipping", "payments", "returns")


def records_of(batch: int) -> list[KafkaRecord]:
    """Return a batch's records: a commit of each group, one day for each batch, and a log end."""
    time_ms = NOW_MS + batch * 40_000_000
    made = [
        commit(
            key=OffsetKey(group, "orders", 0), offset=batch + 1, commit_timestamp_ms=time_ms
        )._replace(offset=batch * len(GROUPS) + number)
        for number, group in enumerate(GROUPS)
    ]
    look = end_offsets("orders", batch, end_offset=batch + 10, as_of_ms=time_ms - 1)
    return [look, *made]


def write_batch(
    tables: HistoryTables, batch: int, records: Sequence[KafkaRecord], buckets: int = 4
) -> None:
    """Write a batch as HistoryBatches does, unless it is complete."""
    digest = f"digest-{batch}"
    if tables.state.is_whole(batch, digest):
        return
    known = tables.state.paths(*OF_BUCKETS)
    rebucket = any(partition_of(path)["buckets"] != str(buckets) for path in known)
    begins = not tables.state.paths(MEMORIES)
    task = BucketTask(tables.root, batch, buckets, tuple(known), rebucket, begins)
    packs = list(pack_records(TOPIC_TABLES, buckets, [batch_of(list(records))]))
    told = [row for few in write_packs(task, packs) for row in few.to_pylist()]
    new = by_table(NewFile(**row) for row in told)
    left = new.pop(STATE, [])
    tables.add(batch, new)
    tables.finish(batch, left, OF_BUCKETS if rebucket else [], digest)


if (
    __name__ == "__main__"
):  # python -m tests.support.pipelines.by_hand URI BATCHES: until all are complete
    place = store_of(sys.argv[1])
    whole = new_tables(place)
    first = whole.state.last()
    for number in range(0 if first is None else first, int(sys.argv[2])):
        write_batch(whole, number, records_of(number), buckets=(4, 8)[number // 7 % 2])
