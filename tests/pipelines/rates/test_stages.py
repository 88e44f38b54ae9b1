"""The job's stages in a real Spark: records in through files, records out to memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from caughtup.pipelines.rates.stages import rate_records

#: A busy machine starts Spark and its workers slowly.
pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.thorough]
RECORD = "topic string, partition int, offset bigint, timestamp_ms bigint, key binary, value binary"
POSITIONS, ENDS = "positions", "ends"
CHANGELOG = "orders-counts-changelog"
MINUTE = 60_000
START = 1_800_000_000_000


class Job:
    """The stages over a directory of records, one batch after the other."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._directory = directory
        self._offset = 0
        self._read = 0
        (directory / "in").mkdir()
        records = (
            spark.readStream.schema(RECORD)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(directory / "in"))
        )
        self.query: StreamingQuery = (
            rate_records(records, POSITIONS, 10)
            .writeStream.format("memory")
            .queryName("rates")
            .option("checkpointLocation", str(directory / "checkpoint"))
            .trigger(processingTime="0 seconds")
            .start()
        )

    def records(self, *records: tuple[str, int, Any, Any]) -> list[tuple[Any, Any]]:
        """Process a batch of (topic, ms, key, value); return the records written because of it."""
        rows = []
        for topic, at_ms, key, value in records:
            self._offset += 1
            encoded = None if value is None else json.dumps(value).encode()
            name = key if isinstance(key, bytes) else json.dumps(key).encode()
            rows.append((topic, 0, self._offset, at_ms, name, encoded))
        made = self._spark.createDataFrame(rows, RECORD).coalesce(1)
        made.write.parquet(str(self._directory / "made" / str(self._offset)))
        (part,) = (self._directory / "made" / str(self._offset)).glob("part-*")
        part.rename(self._directory / "in" / f"{self._offset:08}.parquet")
        self.query.processAllAvailable()
        written = [
            (json.loads(row.key), row.value and json.loads(row.value))
            for row in self._spark.sql("SELECT key, value FROM rates").collect()
        ]
        news, self._read = written[self._read :], len(written)
        return news


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Iterator[Job]:
    job = Job(spark, tmp_path)
    yield job
    job.query.stop()
    spark.sql("DROP VIEW IF EXISTS rates")


def ended(at_ms: int, end: int) -> tuple[str, int, Any, Any]:
    value = {"schema": 1, "topic": CHANGELOG, "partition": 1, "start_offset": 0}
    value |= {"last_stable_offset": end, "end_offset": end, "as_of_ms": at_ms}
    return (ENDS, at_ms, f"{CHANGELOG}-1".encode(), value)


def reported(at_ms: int, lag: int, process: str = "a") -> tuple[str, int, Any, Any]:
    value = {"schema": 1, "role": "standby", "lag": lag, "lags": {CHANGELOG: lag}}
    return (POSITIONS, at_ms, ["orders", process, "0_1"], value)


def test_rates_are_kept_up_over_batches_and_withdrawn_when_nobody_reports(job: Job) -> None:
    at = [START + 10_000 * step for step in range(8)]
    # 100 offsets a second come, and 150 are restored.
    ends = [ended(ms, 50_000 + (ms - START) // 10) for ms in at]
    reports = [reported(ms, 40_000 - (ms - START) // 20) for ms in at]
    first = job.records(*ends[:3], *reports[:3])
    assert {value["windows"][0]["end_samples"] for _, value in first} == {3}
    second = {tuple(key): value for key, value in job.records(*ends[3:], *reports[3:])}
    copy = second["orders", "a", "0_1"]
    minute, *longer = copy["windows"]
    assert copy["as_of_ms"] == at[-1]
    assert (minute["seconds"], minute["position_per_second"], minute["samples"]) == (60, 150.0, 6)
    assert (minute["end_offset_per_second"], minute["spread"]) == (100.0, 0.0)
    assert [window["position_per_second"] for window in longer] == [None, None]
    partition = second[CHANGELOG, 1]
    assert partition["windows"][0]["end_offset_per_second"] == 100.0
    assert "position_per_second" not in partition["windows"][0]

    # Another slot's news let the time pass; this one's timer goes off.
    later = START + 40 * MINUTE
    elsewhere = ("positions", later, ["orders", "b", "0_2"], {"schema": 1, "lags": {"c": 1}})
    withdrawn = job.records(elsewhere)
    assert sorted(withdrawn, key=str) == [
        (["orders", "a", "0_1"], None),
        ([CHANGELOG, 1], None),
    ]
    # What comes after that begins anew.
    again = job.records(ended(later, 90_000), reported(later + 1, 10))
    assert {value["windows"][0]["end_samples"] for _, value in again} == {1}


@pytest.mark.thorough
def test_a_record_that_cannot_be_decoded_is_counted_and_nothing_else_is_lost(job: Job) -> None:
    broken = ("positions", START, b"{not json", {"schema": 1})
    written = job.records(broken, ended(START, 100), reported(START, 10))
    assert len(written) == 2
    decoded = [
        progress["observedMetrics"]["decoded"]
        for progress in job.query.recentProgress
        if progress["numInputRows"]
    ]
    assert [(each["quarantined"], each["events"]) for each in decoded] == [(1, 2)]
    assert decoded[0]["sample"].startswith("positions-0 offset 1: ")
