"""The records of ``__consumer_offsets`` and of the end-offsets topic, as a Spark stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.spark.session import one_line

_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
#: How long the brokers may take to answer when a job starts, in ms.
_PATIENCE_MS = 10_000


#: A fetch at a log's end waits for more, and whatever the consumer asks next waits behind it: half a
#: second for each partition of each batch, at Kafka's default. Larger pieces are fewer round trips, but
#: a consumer for each partition keeps them on the heap.
FETCHING = {
    "kafka.fetch.max.wait.ms": "20",
    "kafka.max.partition.fetch.bytes": str(2 << 20),
    "kafka.max.poll.records": "2000",
}


def record_stream(
    spark: SparkSession, topics: Sequence[str], options: Mapping[str, str], records_per_batch: int
) -> DataFrame:
    """Read topics from their beginning and on: the columns of caughtup.pipelines.events.Record.

    One source for all topics, so that a trigger takes them up to the same moment, and no more
    than so many offsets. ``options`` are source_options'. Raises CaughtupError ``connector_missing``, or
    ``bad_kafka_property`` for a property that Spark keeps to itself.
    """
    reader = (
        spark.readStream.format("kafka")
        .options(**{**FETCHING, **options})
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", "earliest")
        .option("kafka.isolation.level", "read_committed")
        # The service makes its topics with the settings they need; a reader must not.
        .option("kafka.allow.auto.create.topics", "false")
        # The prefix that the consumer group of the driver needs READ on.
        .option("groupIdPrefix", "caughtup-history")
        .option("maxOffsetsPerTrigger", str(records_per_batch))
        # Offsets that are gone must not end the job for good: lost_ranges notes them.
        .option("failOnDataLoss", "false")
    )
    try:
        records = reader.load()
    except AnalysisException as error:
        raise _connector_missing(spark) from error
    except IllegalArgumentException as error:
        raise CaughtupError("bad_kafka_property", one_line(error)) from error
    return records.selectExpr(
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp) AS timestamp_ms",
        "key",
        "value",
    )


def missing_topics(
    spark: SparkSession, topics: Sequence[str], options: Mapping[str, str]
) -> list[str]:
    """Ask the brokers which of the topics they haven't got, with the properties of the source.

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
    except TypeError as error:  # py4j takes the name of a missing class for a package
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
        f"Spark has no Kafka connector; give spark-submit --packages {_CONNECTOR}:{spark.version}",
    )


def _unreachable(servers: str, error: Py4JError) -> CaughtupError:
    return CaughtupError("kafka_unreachable", f"no answer from {servers}: {one_line(error)}")
