"""A Spark with Delta's own library, which shares no code with what writes the history's tables."""

from __future__ import annotations

from pyspark.sql import SparkSession

from caughtup.demo.java.jars import SHIPPED_WITH_PYSPARK, fetch_jars

DELTA = ("io.delta:delta-spark_2.13:4.0.0",)


def delta_session() -> SparkSession:
    """Start Spark on this machine, where it resolves paths; it has to be stopped."""
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
    return builder.getOrCreate()
