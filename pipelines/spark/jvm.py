"""Spark's JVM is a process of its own: report when it ends before the job does."""

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

#: The exceptions of calls to a JVM that has ended; they have other causes too.
UNANSWERED = (Py4JError, OSError)
#: How long a JVM may take to end after its last connection.
_ENDING_SECONDS = 5.0
#: The message that py4j logs, with a stack trace, for each call without an answer.
_SAID_BY_PY4J = "Exception while sending command."


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


def silence_py4j() -> None:
    """Suppress py4j's log lines about a JVM that ended: callers report it in one line."""
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4js)
    # Also the stack trace of the accumulators' thread when its connection ends.
    accumulators.AccumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return record.msg != _SAID_BY_PY4J
