"""A Spark of one thread for the tests of its jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from caughtup.pipelines.java.jars import ensure_spark_jars
from caughtup.pipelines.spark.session import spark_session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Ends with the module: other tests start a Spark of their own in the same process."""
    session = spark_session("caughtup tests", master="local[1]", jars=ensure_spark_jars())
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()
