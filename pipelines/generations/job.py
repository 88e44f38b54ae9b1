"""The job that writes the generations of Kafka Streams groups to a Parquet table.

Each run adds new generations. The log is compacted, but the table keeps all earlier ones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec
import pyarrow
from py4j.protocol import Py4JError
from pyspark import Broadcast
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.types import BinaryType, StructField, StructType

from caughtup.models.errors import CaughtupError
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines import schema
from caughtup.pipelines.events import EndOffsetEvent, KafkaRecord, Undecodable, decode_end_offsets
from caughtup.pipelines.generations.rows import MetadataRecord, end_offset_table, generation_rows
from caughtup.pipelines.generations.schema import GENERATION_ROW, GROUP_GENERATIONS
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.spark.kafka_options import source_options
from caughtup.pipelines.spark.session import condition, one_line
from caughtup.pipelines.spark.sources import FETCHING, load, missing_topics

#: The columns that identify a generation in the table.
_IDENTITY = ("group", "generation", "as_of")
#: The rows of a batch to Spark: scenarios of large groups take 1 MB each.
_ROWS = 16
_PACK = StructType([StructField("events", BinaryType())])
_encode = msgspec.msgpack.Encoder().encode
_decode_packed = msgspec.msgpack.Decoder(list[EndOffsetEvent]).decode
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GenerationsOptions:
    """What the job reads, and the table's directory (``output``, a path or URI).

    ``kafka``: client properties, in any client's spelling. ``parameters``: the settings of
    applications, by group.
    """

    bootstrap_servers: str
    output: str
    kafka: Mapping[str, str] = field(default_factory=dict)
    end_offsets_topic: str = schema.END_OFFSETS_TOPIC
    parameters: Mapping[str, ApplicationParameters] = field(default_factory=dict)


def write_generations(spark: SparkSession, options: GenerationsOptions) -> int:
    """Add the generations that the table does not have yet, and return their number.

    Raises CaughtupError ``connector_missing``, ``kafka_unreachable``, ``bad_kafka_property``,
    ``no_offsets_topic`` or ``generations_failed``.
    """
    source = source_options(options.bootstrap_servers, options.kafka)
    topics = (CONSUMER_OFFSETS, options.end_offsets_topic)
    missing = missing_topics(spark, topics, source)
    if CONSUMER_OFFSETS in missing:
        raise CaughtupError(
            "no_offsets_topic",
            f"no group has ever committed on the cluster: there is no {topics[0]}",
        )
    if missing:
        _log.warning(
            "there is no topic %s, so the lag of every copy is unknown", options.end_offsets_topic
        )
    try:
        offsets, ends = (
            None if topic in missing else read_topic(spark, topic, source) for topic in topics
        )
        assert offsets is not None
        packs = [] if ends is None else end_offset_packs(ends)
        found = group_generations(spark, offsets, packs, options.parameters)
        return add_generations(spark, found, options.output)
    except IllegalArgumentException as error:
        raise CaughtupError("bad_kafka_property", one_line(error)) from error
    except (PySparkException, Py4JError) as error:
        raise CaughtupError("generations_failed", one_line(error)) from error


def end_offset_packs(records: DataFrame) -> list[bytes]:
    """Decode and pack records of the end-offsets topic, given in the columns of KafkaRecord."""
    return [row.events for row in records.mapInArrow(_decode_ends, _PACK).collect()]


def packs_of_samples(samples: DataFrame) -> list[bytes]:
    """Pack decoded samples of end offsets, given in the columns of that table."""
    wanted = (
        *("topic", "partition", "as_of_ms", "log_offset", "present", "start_offset"),
        *("last_stable_offset", "end_offset", "readable_end_offset"),
    )
    return [
        row.events for row in samples.select(*wanted).mapInArrow(_pack_samples, _PACK).collect()
    ]


def group_generations(
    spark: SparkSession,
    records: DataFrame,
    packs: list[bytes],
    parameters: Mapping[str, ApplicationParameters],
) -> DataFrame:
    """Return the table's rows for records of ``__consumer_offsets``.

    Only group metadata leaves the JVM, not commits. ``packs``: from ``end_offset_packs``. Records
    whose column ``told`` is true make no row: they were decided before.
    """
    broadcast = spark.sparkContext.broadcast(packs)
    if "told" not in records.columns:
        records = records.withColumn("told", F.lit(False))
    rows = (
        records.where("substring(key, 1, 2) = X'0002'")
        .select(*MetadataRecord._fields)
        .repartition("key")
        .sortWithinPartitions("key", "partition", "offset")
        .mapInArrow(partial(_generations, broadcast, dict(parameters)), GENERATION_ROW)
    )
    return (
        rows.withColumn("as_of", F.timestamp_millis("as_of_ms"))
        .withColumn("next_rebalance", F.timestamp_millis("next_rebalance_ms"))
        .withColumn("date", F.to_date("as_of"))
        .select(*GROUP_GENERATIONS.names)
    )


def add_generations(spark: SparkSession, found: DataFrame, output: str) -> int:
    """Append the rows that the table does not have, at most one file for each folder."""
    known = known_generations(spark, output)
    if known is not None:
        same = [F.col(f"found.{name}").eqNullSafe(F.col(f"known.{name}")) for name in _IDENTITY]
        found = found.alias("found").join(
            known.select(*_IDENTITY).alias("known"), same, "left_anti"
        )
    found = found.repartition(schema.BUCKETS, "group_bucket").persist()
    try:
        count = found.count()
        if count:
            found.write.partitionBy("date", "group_bucket").mode("append").parquet(output)
        _warn_of_unread(found)
    finally:
        found.unpersist()
    return count


def known_generations(spark: SparkSession, uri: str) -> DataFrame | None:
    """Read the table; return None if it does not exist yet."""
    try:
        return spark.read.schema(GROUP_GENERATIONS).parquet(uri)
    except AnalysisException as error:
        if condition(error) == "PATH_NOT_FOUND":
            return None
        raise


def _warn_of_unread(found: DataFrame) -> None:
    unread = found.where("error IS NOT NULL")
    if first := unread.select("error", "log_partition", "log_offset").head(1):
        error, partition, offset = first[0]
        _log.warning(
            "records that cannot be read: %d, such as partition %d offset %d: %s",
            unread.count(),
            partition,
            offset,
            error,
        )


def read_topic(spark: SparkSession, topic: str, source: Mapping[str, str]) -> DataFrame:
    """Read a topic up to its present end, in the columns of KafkaRecord."""
    reader = (
        spark.read.format("kafka")
        .options(**{**FETCHING, **source})
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        # Groups' records are in no transaction: an open one must not hold them back.
        .option("kafka.isolation.level", "read_uncommitted")
        .option("kafka.allow.auto.create.topics", "false")
        .option("groupIdPrefix", "caughtup-history")
        # Compaction may remove records while they are read, which is no loss.
        .option("failOnDataLoss", "false")
    )
    return load(spark, reader).selectExpr(
        "topic", "partition", "offset", "unix_millis(timestamp) AS timestamp_ms", "key", "value"
    )


def _decode_ends(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        columns = (column.to_pylist() for column in batch)
        events = decode_end_offsets(map(KafkaRecord._make, zip(*columns, strict=True)))
        good = [event for event in events if not isinstance(event, Undecodable)]
        yield pyarrow.RecordBatch.from_pydict({"events": [_encode(good)]})


def _pack_samples(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        samples = zip(*(column.to_pylist() for column in batch), strict=True)
        events = [_sample_event(*sample) for sample in samples]
        yield pyarrow.RecordBatch.from_pydict({"events": [_encode(events)]})


def _sample_event(
    topic: str, partition: int, time_ms: int, log_offset: int, present: bool, *ends: int | None
) -> EndOffsetEvent:
    start, stable, end, readable = ends
    return EndOffsetEvent(
        topic,
        partition,
        log_offset,
        time_ms,
        present=present,
        start_offset=start or 0,
        last_stable_offset=stable or 0,
        end_offset=end or 0,
        readable_end_offset=readable,
    )


def _generations(
    packs: Broadcast[list[bytes]],
    parameters: Mapping[str, ApplicationParameters],
    batches: Iterable[pyarrow.RecordBatch],
) -> Iterator[pyarrow.RecordBatch]:
    ends = end_offset_table(event for pack in packs.value for event in _decode_packed(pack))
    columns = ((column.to_pylist() for column in batch) for batch in batches)
    records = (MetadataRecord._make(one) for each in columns for one in zip(*each, strict=True))
    arrow = arrow_schema(GENERATION_ROW)
    rows: list[dict[str, object]] = []
    for row in generation_rows(records, ends, parameters):
        rows.append(row._asdict())
        if len(rows) == _ROWS:
            yield pyarrow.RecordBatch.from_pylist(rows, schema=arrow)
            rows = []
    if rows:
        yield pyarrow.RecordBatch.from_pylist(rows, schema=arrow)
