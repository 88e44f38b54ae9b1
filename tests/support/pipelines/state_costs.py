"""What Spark's own state costs: ``python -m tests.support.pipelines.state_costs``.

The least that lag needs of a state, by ``transformWithStateInPandas`` in RocksDB (Spark 4): the last
offset of each group and partition is kept, and each commit's advance is a row. Beside it stand
buckets of the history, which do all their work: ``python -m tests.support.pipelines.bucket_costs``.
Spark's workers need protobuf for it, which is in no lock of ours: ``pip install protobuf``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor import TimerValues
from pyspark.sql.types import LongType, StructField, StructType

from caughtup.bench.usage import cpu_seconds
from caughtup.pipelines.java.jars import ensure_spark_jars
from caughtup.pipelines.spark.session import spark_session, stop

_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_ADVANCE = StructType([StructField("key", LongType()), StructField("advance", LongType())])
_OFFSET = StructType([StructField("offset", LongType())])


class Advances(StatefulProcessor):
    """Keeps the last offset of a key, and tells by how much each commit advanced."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._last = handle.getValueState("last", _OFFSET)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: tuple[int],
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        last = self._last.get()[0] if self._last.exists() else 0
        for frame in rows:
            before = frame["offset"].shift(1, fill_value=last)
            last = int(frame["offset"].iloc[-1])
            yield pd.DataFrame({"key": frame["key"], "advance": frame["offset"] - before})
        self._last.update((last,))

    def close(self) -> None:
        pass


def main() -> None:
    """Print CPU seconds a million commits of the second batch, which finds all keys in the state."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=200_000, help="in each of two batches")
    parser.add_argument("--keys", type=int, default=50_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        spark = spark_session("state costs", master="local[1]", jars=ensure_spark_jars())
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", _PROVIDER)
        spark.conf.set("spark.sql.shuffle.partitions", "4")
        for batch in range(2):
            begin = batch * given.commits
            rows = spark.range(begin, begin + given.commits)
            frame = rows.selectExpr(f"id % {given.keys} AS key", "id AS offset")
            frame.write.mode("append").parquet(f"{directory}/commits")
            source = spark.readStream.schema(frame.schema).parquet(f"{directory}/commits")
            states = source.groupBy("key").transformWithStateInPandas(
                Advances(), _ADVANCE, outputMode="append", timeMode="none"
            )
            used, began = _cpu_seconds(), time.monotonic()
            query = (
                states.writeStream.format("noop")
                .option("checkpointLocation", f"{directory}/checkpoint")
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            seconds = time.monotonic() - began
            cost = (_cpu_seconds() - used) / given.commits * 1e6
            print(f"batch {batch + 1}: {cost:.1f} CPU s a million commits, {seconds:.1f} s")
        stop(spark)


def _cpu_seconds() -> float:
    return time.process_time() + cpu_seconds()


if __name__ == "__main__":
    main()
