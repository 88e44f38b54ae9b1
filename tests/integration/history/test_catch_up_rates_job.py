"""The job itself on a real cluster: state across restarts, bad records, topics that are missing."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.errors import CaughtupError
from caughtup.models.records.keys import encode_copy
from caughtup.models.records.task_positions import FORMAT, PositionRecord
from caughtup.models.records.topics import CATCH_UP_RATES, PIPELINE_PROGRESS
from caughtup.pipelines.java.jars import ensure_spark_jars
from caughtup.pipelines.rates.stream import RatesOptions, catch_up_rates
from caughtup.pipelines.spark.session import spark_session
from tests.integration.conftest import MakeTopic
from tests.support.own_topics.end_offsets import end_offsets_record
from tests.support.topics import published
from tests.support.topics.validation import problems

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.thorough]

CHANGELOG = "orders-counts-changelog"
COPY = ["orders", "a", "0_1"]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("caughtup rates test", master="local[1]", jars=ensure_spark_jars())
    yield session
    session.stop()


class Job:
    """Topics of a job's own, what is written to them, and what it makes of that."""

    def __init__(
        self, cluster: EmbeddedCluster, make_topic: MakeTopic, spark: SparkSession, at: Path
    ) -> None:
        self._cluster, self.spark = cluster, spark
        self.options = RatesOptions(
            cluster.bootstrap_servers,
            str(at / "checkpoint"),
            10,
            make_topic("positions"),
            make_topic("ends"),
            make_topic("rates"),
            make_topic("progress"),
            once=True,
        )
        self._producer = Producer(cluster.client_config())

    def ended(self, at_ms: int, end: int) -> None:
        record = end_offsets_record(CHANGELOG, 1, end, at_ms)
        self.write(self.options.end_offsets_topic, *record, at_ms)

    def reported(self, at_ms: int, lag: int) -> None:
        report = PositionRecord(FORMAT.schema, role="restoring", lag=lag, lags={CHANGELOG: lag})
        key = encode_copy(*COPY)
        self.write(self.options.positions_topic, key, FORMAT.encode(report), at_ms)

    def write(self, topic: str, key: bytes, value: bytes, at_ms: int) -> None:
        self._producer.produce(topic, value, key, timestamp=at_ms)

    def run(self) -> None:
        """Process what there is."""
        assert self._producer.flush(30) == 0
        catch_up_rates(self.spark, self.options, lambda: False)

    def written(self, topic: str) -> dict[str, Any]:
        """Return the newest value of each key; every record is as its topic's schema says."""
        known = {
            self.options.rates_topic: CATCH_UP_RATES,
            self.options.progress_topic: PIPELINE_PROGRESS,
        }
        newest: dict[str, Any] = {}
        for key, value in published.read_records(self._cluster, topic):
            assert problems(known[topic], key, value) == []
            assert key is not None
            if value is not None:
                newest[key.decode()] = json.loads(value)
        return newest


@pytest.fixture
def job(
    cluster: EmbeddedCluster, make_topic: MakeTopic, spark: SparkSession, tmp_path: Path
) -> Job:
    return Job(cluster, make_topic, spark, tmp_path)


@pytest.mark.thorough
def test_a_job_that_is_started_again_counts_what_it_saw_before(job: Job) -> None:
    begin_ms = time.time_ns() // 1_000_000 - 120_000
    key = json.dumps(COPY, separators=(",", ":"))
    for second in range(0, 60, 5):
        if second == 30:
            job.write(job.options.positions_topic, b"{not a key", b"{}", begin_ms)
            job.run()
            before = job.written(job.options.rates_topic)[key]
            assert before["windows"][0]["samples"] == 6
            progress = job.written(job.options.progress_topic)["rates"]
            assert (progress["state"], progress["quarantined"]) == ("stopped", 1)
        at_ms = begin_ms + second * 1_000
        job.ended(at_ms, 100_000 + 40 * second)
        job.reported(at_ms, 80_000 - 100 * second)
    job.run()
    after = job.written(job.options.rates_topic)
    assert after.keys() == {key, json.dumps([CHANGELOG, 1], separators=(",", ":"))}
    minute = after[key]["windows"][0]
    assert (minute["samples"], minute["end_samples"]) == (12, 12)
    assert (minute["position_per_second"], minute["end_offset_per_second"]) == (140, 40)
    assert (after[key]["as_of_ms"], after[key]["trigger_seconds"]) == (begin_ms + 55_000, 10)
    (newest,) = (value for name, value in after.items() if name != key)
    assert newest["windows"][0] == {
        "seconds": 60,
        "end_offset_per_second": 40,
        "end_spread": 0,
        "end_samples": 12,
    }


def test_a_topic_that_is_missing_is_named_and_not_created(job: Job) -> None:
    missing = f"nobodys-{uuid.uuid4().hex[:8]}"
    options = replace(job.options, rates_topic=missing)
    for _ in range(2):
        with pytest.raises(CaughtupError, match=f"there is no topic {missing}; ") as caught:
            catch_up_rates(job.spark, options, lambda: False)
        assert caught.value.code == "topic_missing"
