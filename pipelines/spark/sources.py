"""Read Kafka topics as a Spark stream, and stop a stream when its job ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException, StreamingQueryException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.jars import connector_of
from caughtup.pipelines.spark.session import UNANSWERED, one_line

#: How long the brokers may take to answer when a job starts, in ms.
_PATIENCE_MS = 10_000


#: What Java throws of classes that were compiled against others than it finds.
_UNFIT = ("java.lang.LinkageError", "java.util.ServiceConfigurationError")

#: A fetch at a log's end waits for records, and delays the consumer's next request: by Kafka's
#: default 0.5 s for each partition of each batch. Larger fetches would need fewer round trips, but
#: each partition's consumer keeps one on the heap.
FETCHING = {
    "kafka.fetch.max.wait.ms": "20",
    "kafka.max.partition.fetch.bytes": str(2 << 20),
    "kafka.max.poll.records": "2000",
}


def record_stream(
    spark: SparkSession,
    topics: Sequence[str],
    options: Mapping[str, str],
    records_per_batch: int,
    *,
    committed: bool = True,
) -> DataFrame:
    """Read topics from their start and follow them, in the columns of KafkaRecord.

    All topics are one source, so that a batch has them up to about the same time, with at most
    ``records_per_batch`` offsets. ``committed``: only up to the last stable offset, and without
    aborted records. ``options``: from ``source_options``. Raises CaughtupError like ``load``.
    """
    reader = (
        spark.readStream.format("kafka")
        .options(**{**FETCHING, **options})
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", "earliest")
        .option("kafka.isolation.level", "read_committed" if committed else "read_uncommitted")
        # The service creates its topics with the right configs; a reader must not create them.
        .option("kafka.allow.auto.create.topics", "false")
        # The driver's consumer group, for which READ is needed, has this prefix.
        .option("groupIdPrefix", "caughtup-history")
        .option("maxOffsetsPerTrigger", str(records_per_batch))
        # Lost offsets must not end the job for good: lost_ranges records them.
        .option("failOnDataLoss", "false")
    )
    return load(spark, reader).selectExpr(
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp) AS timestamp_ms",
        "key",
        "value",
    )


def load(spark: SparkSession, reader: DataFrameReader | DataStreamReader) -> DataFrame:
    """Return what a reader with Kafka's format reads.

    Raises CaughtupError ``connector_missing``, ``connector_unfit`` for a connector of another
    release of Spark or Scala, or ``bad_kafka_property`` for a property that Spark reserves.
    """
    try:
        return reader.load()
    except AnalysisException as error:
        raise _connector_missing(spark) from error
    except IllegalArgumentException as error:
        raise CaughtupError("bad_kafka_property", one_line(error)) from error
    except Py4JJavaError as error:
        gateway = spark.sparkContext._gateway
        if not any(is_instance_of(gateway, error.java_exception, name) for name in _UNFIT):
            raise
        raise CaughtupError(
            "connector_unfit",
            "the Kafka connector is of another release of Spark or Scala than Spark is "
            f"({one_line(error)}); give spark-submit --packages {_fitting_connector(spark)}",
        ) from error


def missing_topics(
    spark: SparkSession, topics: Sequence[str], options: Mapping[str, str]
) -> list[str]:
    """Return which of the topics do not exist; ``options``: from ``source_options``.

    Raises CaughtupError ``connector_missing``, or ``kafka_unreachable`` within about 10 seconds.
    """
    jvm = spark._jvm
    assert jvm is not None
    properties = jvm.java.util.Properties()
    for name in sorted(options):
        properties.setProperty(name.removeprefix("kafka."), options[name])
    properties.setProperty("default.api.timeout.ms", str(_PATIENCE_MS))
    properties.setProperty("request.timeout.ms", str(_PATIENCE_MS // 2))
    servers = options["kafka.bootstrap.servers"]
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    except TypeError as error:  # py4j treats the name of a missing class as a package
        raise _connector_missing(spark) from error
    except Py4JError as error:
        raise _unreachable(servers, error) from error
    try:
        listing = jvm.org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(True)
        found = admin.listTopics(listing).names().get()
        return [topic for topic in topics if not found.contains(topic)]
    except Py4JError as error:
        raise _unreachable(servers, error) from error
    finally:
        admin.close()


def _connector_missing(spark: SparkSession) -> CaughtupError:
    return CaughtupError(
        "connector_missing",
        f"Spark has no Kafka connector; give spark-submit --packages {_fitting_connector(spark)}",
    )


def _fitting_connector(spark: SparkSession) -> str:
    jvm = spark._jvm
    assert jvm is not None
    scala, _, _ = str(jvm.scala.util.Properties.versionNumberString()).rpartition(".")
    return connector_of(spark.version, scala)


def _unreachable(servers: str, error: Py4JError) -> CaughtupError:
    return CaughtupError("kafka_unreachable", f"no answer from {servers}: {one_line(error)}")


@contextmanager
def stopped_at_end(query: StreamingQuery, stop_requested: Callable[[], bool]) -> Iterator[None]:
    """Stop a stream at the end of the context.

    A failure of the stream counts as its end if a stop was requested: a signal to all processes may
    have reached Spark's workers or its JVM first.
    """
    try:
        yield
    except (StreamingQueryException, *UNANSWERED):
        if not stop_requested():
            raise
    finally:
        with suppress(*UNANSWERED):
            query.stop()
