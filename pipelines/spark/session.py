"""Start the Spark session of a job: local by default, the cluster's under spark-submit."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.spark.jvm import silence_py4j

#: The master for Spark on all processors of this machine.
LOCAL = "local[*]"

#: The logging configuration: only errors, on stderr, from the start of the JVM.
_LOGGING = Path(__file__).resolve().with_name("log4j2.properties")
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # Spark's newer way to list offsets silently drops internal topics such as __consumer_offsets.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
    # Otherwise timestamps are written as INT96, which is deprecated.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # The history's batches have more plans than the 100 whose compiled code Spark keeps.
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.parquet.compression.codec": "zstd",
    # Writes a batch's few folders at once, instead of sorting by folder first.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    # By default each partition's consumer keeps its last fetch for 5 minutes.
    "spark.kafka.consumer.cache.timeout": "1m",
    "spark.kafka.consumer.fetchedData.cache.timeout": "1m",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"',
    "spark.ui.enabled": "false",
    # Driver and executor in one process. Kafka's consumers keep some 5 MB for each partition.
    "spark.driver.memory": "2g",
}


def spark_session(
    application: str,
    *,
    master: str | None = None,
    jars: Path | None = None,
    java_home: Path | None = None,
) -> SparkSession:
    """Start Spark, or return the existing session.

    ``master``: a Spark master; None means local[*], or spark-submit's. ``jars``: a directory of
    jars to load; None leaves the connector to spark-submit's ``--packages``. Executors on other
    machines need caughtup installed. Raises CaughtupError ``java_missing`` or ``spark_failed``.
    """
    if not submitted():
        _use_java(java_home)
        if master is None:
            master = LOCAL
    silence_py4j()
    # By default workers run the first python3 on the PATH, which may lack Arrow and caughtup.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(application)
    settings = dict(_SETTINGS)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            # Each shuffle partition has state files of its own; the default of 200 suits a cluster.
            settings |= _LOCAL_SETTINGS | {"spark.sql.shuffle.partitions": str(_processors())}
    if jars is not None:
        settings["spark.jars"] = ",".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    for name in sorted(settings):
        builder = builder.config(name, settings[name])
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise CaughtupError("spark_failed", f"Spark did not start: {one_line(error)}") from error


def submitted() -> bool:
    """Return whether spark-submit runs this process, and so has set master and packages."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def one_line(error: Exception) -> str:
    """Return a failure of Spark's in one line, without the JVM's stack trace."""
    # The attributes in which py4j and PySpark, in this order, keep the Java exception.
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    text = str(error)
    if cause is not None:
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = cause.getMessage() or cause.toString()
    lines = _raised(text) or [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _raised(text: str) -> list[str]:
    """Return the lines after the last frame of a Python traceback; none without one."""
    lines = text.splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    if not frames:
        return []
    said = [line for line in lines[frames[-1] + 1 :] if line and not line[0].isspace()]
    # py4j's exceptions have the JVM's message in the second line.
    if len(said) > 1 and said[0].startswith("py4j."):
        said = said[1:]
    return [line.removeprefix(": ").strip() for line in said]


def _use_java(java_home: Path | None) -> None:
    if java_home is not None:
        os.environ["JAVA_HOME"] = str(java_home)
        return
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=os.path.join(home, "bin") if home else None) is None:
        raise CaughtupError(
            "java_missing",
            f"there is no java in JAVA_HOME ({home})" if home else "Spark needs Java 17 or 21",
        )


def _processors() -> int:
    return len(os.sched_getaffinity(0))
