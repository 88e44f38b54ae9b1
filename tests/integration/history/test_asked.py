"""A real history, asked without Spark at each of its versions: lag is what caughtup lag said then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.pipelines.java.jars import ensure_spark_jars
from caughtup.pipelines.spark.session import spark_session
from tests.integration.conftest import MakeTopic
from tests.support.pipelines.watched import Watched
from tests.support.service import caughtup

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.thorough]
BATCHES = 4


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    session = spark_session("caughtup asked test", master="local[2]", jars=ensure_spark_jars())
    yield session
    session.stop()


def looked(cluster: EmbeddedCluster, group: str, directory: Path) -> int:
    """Return a group's lag as caughtup lag says it."""
    at = ("-b", cluster.bootstrap_servers)
    ran = caughtup("lag", *at, "--format", "json", group, directory=directory)
    assert ran.code == 0, ran.err
    return sum(line["lag"] for line in ran.lines if line["kind"] == "partition")


def asked(tables: str, version: int, group: str, directory: Path) -> int:
    """Return a group's lag now as caughtup history says it of the tables at a version."""
    question = ("lag", "--group", group, "--since", "30m", "--at", str(version))
    ran = caughtup(
        "history", *question, "--tables", tables, "--format", "json", directory=directory
    )
    assert ran.code == 0, ran.err
    found: int = ran.lines[-1]["lag"]
    return found


def read(tables: str, version: int, group: str) -> int:
    """Return a group's lag as polars reads it at a version: the last row of each partition."""
    rows = pl.scan_delta(f"{tables}/lag", version=version).filter(pl.col("group") == group)
    last = rows.sort("as_of").group_by("topic", "partition").last()
    return int(last.select("lag").sum().collect().item())


def test_lag_at_every_version_is_what_caughtup_lag_said_after_that_batch(
    cluster: EmbeddedCluster, make_topic: MakeTopic, spark: SparkSession, tmp_path: Path
) -> None:
    ends = make_topic("end-offsets", config={"cleanup.policy": "compact"})
    watched = Watched(cluster, make_topic("orders", partitions=2), ends, spark, tmp_path)
    tables = watched.options.output
    said: dict[int, int] = {}
    for batch in range(BATCHES):
        for partition in (0, 1):
            watched.produce(partition, 10 * (batch + partition + 1))
            watched.commit(partition, 3 * (batch + 1) + partition)
        watched.publish_end_offsets()
        watched.run()
        version = DeltaTable(f"{tables}/lag").version()
        assert version not in said
        said[version] = looked(cluster, watched.group, tmp_path)
    assert len(set(said.values())) == BATCHES

    state = DeltaTable(f"{tables}/_state").history()
    left = {int(one[name]) for one in state if (name := "caughtup.version.lag") in one}
    assert set(said) == left, "the commit that ends a batch names the version"
    assert sorted(said) == list(range(1, max(said) + 1)), "every version is one batch's"
    for version, lag in said.items():
        assert asked(tables, version, watched.group, tmp_path) == lag, version
        assert read(tables, version, watched.group) == lag, version
