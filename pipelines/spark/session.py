"""Start the Spark session of a job, and use its JVM, a process of its own.

The session is local by default, the cluster's under spark-submit. Files at any URI that Hadoop
supports (file, hdfs, s3a …) are read through the JVM; its end before the job's is reported.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseServer

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import accumulators
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.py4j_logs import silence_py4j

#: What PySpark says in a worker of another Python than the driver's.
_OTHER_PYTHON = re.compile(
    r"PYTHON_VERSION_MISMATCH\] Python in worker has different version:? (?P<worker>[\d.]+\d) "
    r"than that in driver:? (?P<driver>[\d.]+\d)"
)
#: What Spark says, in a line of its own, of a Python that didn't start.
_NO_WORKER = "Error from python worker:"
#: The exceptions of calls to a JVM that has ended; they have other causes too.
UNANSWERED = (Py4JError, OSError)
#: How long a JVM may take to end after its last connection.
_ENDING_SECONDS = 5.0


@contextmanager
def report_dead_jvm(spark: SparkSession) -> Iterator[None]:
    """Raise CaughtupError ``spark_failed`` if Spark's JVM ends inside the context."""
    try:
        yield
    except UNANSWERED as error:
        how = how_jvm_ended(spark)
        if how is None:
            raise
        raise CaughtupError("spark_failed", f"Spark's JVM {how}") from error


def how_jvm_ended(spark: SparkSession) -> str | None:
    """Return how Spark's JVM ended; None if it runs, or if another process started it.

    Call it after one of UNANSWERED: it waits up to 5 s for a JVM that is ending.
    """
    # A JVM that spark-submit started is our parent, and ends us with it.
    process: subprocess.Popen[bytes] | None = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        status = process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    if status == -signal.SIGKILL:
        return "was killed (SIGKILL), as by a machine or a container without memory left"
    if status == -signal.SIGABRT:
        return f"crashed; if it could, it wrote hs_err_pid{process.pid}.log"
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with the exit status {status}"


def stop(spark: SparkSession) -> None:
    """Stop Spark; do nothing if its JVM has ended."""
    with suppress(*UNANSWERED):
        spark.stop()


def _silence() -> None:
    """Suppress what py4j and PySpark print about a JVM that has ended."""
    silence_py4j()
    # The stack trace of the accumulators' thread when its connection ends.
    for server in vars(accumulators).values():  # its class has other names since Spark 4.1
        if isinstance(server, type) and issubclass(server, BaseServer):
            server.handle_error = lambda *_: None  # type: ignore[method-assign]


class Files:
    """The file operations of the jobs. Paths are URIs or plain paths."""

    def __init__(self, spark: SparkSession) -> None:
        jvm = spark._jvm
        assert jvm is not None
        self._path = jvm.org.apache.hadoop.fs.Path
        self._io = jvm.org.apache.hadoop.io.IOUtils
        self._bytes = jvm.java.io.ByteArrayOutputStream
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        system, at = self._at(path)
        return bool(system.exists(at))

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory; empty if it does not exist."""
        system, at = self._at(path)
        if not system.exists(at):
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(at))

    def read(self, path: str) -> bytes:
        """Read a small file."""
        system, at = self._at(path)
        source, copy = system.open(at), self._bytes()
        self._io.copyBytes(source, copy, 4096, True)
        return bytes(copy.toByteArray())

    def write(self, path: str, content: bytes) -> None:
        """Write a small file atomically, unless it exists already.

        Raises CaughtupError ``output_unwritable``.
        """
        system, at = self._at(path)
        aside = self._path(at.getParent(), f"_{at.getName()}.new")
        stream = system.create(aside, True)
        stream.write(content)
        stream.close()
        if not system.exists(at) and not system.rename(aside, at):
            raise CaughtupError("output_unwritable", f"can't write {path}")

    def check_writable(self, path: str) -> None:
        """Check now that a directory can be written; Spark would fail only after the first batch.

        Raises CaughtupError ``output_unwritable``.
        """
        try:
            system, at = self._at(path)
            probe = self._path(at, "_caughtup_probe")
            system.create(probe, True).close()
            system.delete(probe, False)
        except Py4JError as error:
            raise CaughtupError(
                "output_unwritable", f"can't write {path}: {one_line(error)}"
            ) from error

    def _at(self, path: str) -> tuple[JavaObject, JavaObject]:
        at = self._path(path)
        return at.getFileSystem(self._conf), at


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
    # Python's workers keep freed memory for the next array instead of returning it each time, which
    # would have the kernel clear it again: a tenth of the history's work.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
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
    _silence()
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


def condition(error: PySparkException) -> str | None:
    """Return the name of an error's condition, such as PATH_NOT_FOUND; Spark 3.5 calls it class."""
    name: Callable[[], str | None] = getattr(error, "getCondition", error.getErrorClass)
    return name()


def one_line(error: Exception) -> str:
    """Return a failure of Spark's in one line, without the JVM's stack trace."""
    # The attributes in which py4j and PySpark, in this order, keep the Java exception.
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    text = str(error)
    if python := _OTHER_PYTHON.search(text):
        return (
            f"executors run Python {python['worker']}, the driver {python['driver']}: name one of "
            "the driver's release in PYSPARK_PYTHON or spark.pyspark.python"
        )
    if cause is not None:
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = cause.getMessage() or cause.toString()
    lines = _raised(text) or [line.strip() for line in text.splitlines() if line.strip()]
    if lines[:1] == [_NO_WORKER] and len(lines) > 1:
        # What the Python that didn't start wrote, before its path.
        path = next((n for n, line in enumerate(lines) if line == "PYTHONPATH was:"), len(lines))
        return f"{_NO_WORKER} {lines[path - 1]}"
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
