"""What tests of the jobs on Spark share: a session, a watched topic, a cluster with rights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from caughtup.demo.cluster.broker_config import Security, Tls
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.pipelines.java.jars import ensure_spark_jars
from caughtup.pipelines.spark.session import spark_session
from tests.integration.conftest import MakeCluster, MakeTopic
from tests.support.pipelines.watched import Watched


@pytest.fixture
def secure(make_cluster: MakeCluster, tls: Tls) -> EmbeddedCluster:
    """TLS, passwords and an authorizer: an admin, and a user for the jobs that may do nothing yet."""
    users = {"admin": "admin's", "spark": 'back\\slash and "quotes"'}
    return make_cluster(security=Security("sasl_ssl", users=users, authorizer=True, tls=tls))


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("caughtup history test", jars=ensure_spark_jars())
    yield session
    session.stop()


@pytest.fixture
def watched(
    cluster: EmbeddedCluster, make_topic: MakeTopic, spark: SparkSession, tmp_path: Path
) -> Watched:
    end_offsets = make_topic("end-offsets", config={"cleanup.policy": "compact"})
    return Watched(cluster, make_topic("orders", partitions=2), end_offsets, spark, tmp_path)
