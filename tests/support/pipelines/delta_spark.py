"""A Spark session with Delta's own library, which is independent of the history's writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from caughtup.pipelines.java.jars import SHIPPED_WITH_PYSPARK, fetch_jars

DELTA = ("io.delta:delta-spark_2.13:4.2.0",)


@contextmanager
def delta_session() -> Iterator[SparkSession]:
    """Start Spark on this machine, in a JVM of its own."""
    end_jvm()
    jars = fetch_jars("spark-delta", DELTA, (*SHIPPED_WITH_PYSPARK, "org.antlr"))
    settings = {
        "spark.jars": ",".join(map(str, sorted(jars.glob("*.jar")))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.appName("caughtup readers test").master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        end_jvm()


def end_jvm() -> None:
    """End the JVM that Spark leaves in a process: a later session would keep its jars."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
    SparkContext._gateway = SparkContext._jvm = None
