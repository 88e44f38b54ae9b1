"""A batch's CPU time by buckets: ``python -m tests.support.pipelines.bucket_costs``.

Without Kafka and Spark: decoding, which is shared by any number of cores, and each bucket, which
takes one core. CPU time hardly depends on other work on the machine.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from caughtup.models.wire.consumer_offsets import OffsetKey
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.history.buckets.tables import BucketTask, write_packs
from caughtup.pipelines.history.decoding.batches import pack_records
from tests.support.pipelines.commit_batches import NOW_MS, batch_of, commit
from tests.support.pipelines.delta import new_tables
from tests.support.pipelines.end_offsets import TOPIC_TABLES, end_offsets

RECORDS, GROUPS, ROWS = 200_000, 500, 10_000


def records() -> Iterator[pa.RecordBatch]:
    """Make commits of many groups, in Arrow batches like Spark's, and a sample of the log end."""
    yield batch_of([end_offsets("orders", 0, end_offset=RECORDS, as_of_ms=NOW_MS)])
    for start in range(0, RECORDS, ROWS):
        yield batch_of(
            [
                commit(
                    key=OffsetKey(f"group-{at % GROUPS}", "orders", 0),
                    offset=at,
                    commit_timestamp_ms=NOW_MS + at,
                )._replace(offset=at)
                for at in range(start, start + ROWS)
            ]
        )


def main() -> None:
    """Print, for numbers of buckets, CPU seconds a million commits: decoding, buckets, the largest."""
    made = list(records())
    print("buckets  decoding  all buckets  the largest bucket")
    for buckets in (4, 8, 16, 32):
        before = time.process_time()
        packs = pa.Table.from_batches(list(pack_records(TOPIC_TABLES, buckets, made)))
        decoding = time.process_time() - before
        costs = []
        with tempfile.TemporaryDirectory() as directory:
            root = Store(directory)
            new_tables(root)
            for bucket in range(buckets):
                own = packs.filter(pc.field("bucket") == bucket).to_batches()
                before = time.process_time()
                list(write_packs(BucketTask(root, 0, buckets, (), False), own))
                costs.append(time.process_time() - before)
        figures = (decoding, sum(costs), max(costs))
        print(f"{buckets:7}", *(f"{one / RECORDS * 1e6:10.2f}" for one in figures))


if __name__ == "__main__":
    main()
