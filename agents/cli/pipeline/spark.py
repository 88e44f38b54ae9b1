"""Start Spark for a command: with the jars kept here, or as spark-submit started it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from caughtup.agents.cli.extras import missing_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The newest that Spark 4.0 runs on.
_NEWEST_JAVA = 21


def start_spark(application: str, master: str | None) -> SparkSession:
    """Start Spark on a master; None is all of this machine, or what spark-submit was told.

    Raises UserError where Spark isn't installed, and CaughtupError where it can't start.
    """
    try:
        from caughtup.pipelines.spark.session import spark_session, submitted
    except ImportError as error:
        raise missing_extra("spark", error) from error
    if submitted():
        return spark_session(application, master=master)
    from caughtup.pipelines.java.find import find_java
    from caughtup.pipelines.java.jars import ensure_spark_jars

    java = find_java(newest=_NEWEST_JAVA)
    return spark_session(application, master=master, jars=ensure_spark_jars(), java_home=java.home)


@contextmanager
def running_spark(application: str, master: str | None) -> Iterator[SparkSession]:
    """Start Spark as ``start_spark`` does, and stop it at the context's end.

    Raises CaughtupError ``spark_failed``, too, where its JVM ends within the context.
    """
    spark = start_spark(application, master)
    from caughtup.pipelines.spark.session import report_dead_jvm, stop

    try:
        with report_dead_jvm(spark):
            yield spark
    finally:
        stop(spark)


def stop_on_signals() -> threading.Event:
    """Stop in order on SIGINT and SIGTERM. Called after Spark's start, which takes SIGINT."""
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stop.set())
    return stop
