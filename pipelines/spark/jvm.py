"""Spark's JVM, a process of its own: it may end before the job does, and then says nothing itself."""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark import accumulators
from pyspark.sql import SparkSession

from caughtup.models.errors import CaughtupError

#: What Python's side raises where it asks a JVM that is gone, and in other cases, too.
UNANSWERED = (Py4JError, OSError)
#: The time from a JVM's last connection to its end.
_ENDING_SECONDS = 5.0
#: What py4j says of each question that gets no answer, as the root's and with its stack.
_SAID_BY_PY4J = "Exception while sending command."


@contextmanager
def told_in_one_line(spark: SparkSession) -> Iterator[None]:
    """Raise CaughtupError ``spark_failed`` where Spark's JVM ends within the context."""
    try:
        yield
    except UNANSWERED as error:
        how = how_jvm_ended(spark)
        if how is None:
            raise
        raise CaughtupError("spark_failed", f"Spark's JVM {how}") from error


def how_jvm_ended(spark: SparkSession) -> str | None:
    """Return how Spark's JVM ended; None while it runs, or where another process started it.

    To be asked after one of UNANSWERED: it waits a moment for a JVM that is ending.
    """
    # A JVM that spark-submit started is our parent, and takes us along.
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
    """Stop Spark, if its JVM is still there."""
    with suppress(*UNANSWERED):
        spark.stop()


def say_less() -> None:
    """Leave what ends a JVM, or a callback, to whoever waits for it: they say it in one line."""
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4js)
    # The thread that takes the workers' counts, when nobody sends them any more.
    accumulators.AccumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return record.msg != _SAID_BY_PY4J
