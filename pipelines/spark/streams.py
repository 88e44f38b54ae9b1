"""A stream of Spark's for as long as somebody waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from caughtup.pipelines.spark.jvm import UNANSWERED


@contextmanager
def stopped_at_end(query: StreamingQuery, stop_requested: Callable[[], bool]) -> Iterator[None]:
    """Never leave a stream running after the context.

    Where it was to stop, its failure is its end: what makes us stop, such as a signal to all
    processes of a service, may have reached Spark's workers or its JVM first.
    """
    try:
        yield
    except (StreamingQueryException, *UNANSWERED):
        if not stop_requested():
            raise
    finally:
        with suppress(*UNANSWERED):
            query.stop()
