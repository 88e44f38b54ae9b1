"""``caughtup bench history``: the rate of the history job beside Spark's own read of the log."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product, starmap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.cli.pipeline_jobs import running_spark
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.bench.figures import Figures
from caughtup.bench.offsets.command import OFFSETS_PARTITIONS
from caughtup.bench.options import partitions_option, threads_option
from caughtup.bench.usage import PeakMemory, cpu_seconds
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.end_offsets import FORMAT, EndOffsetsRecord
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from caughtup.demo.fleet.offset_logs import Shape
    from caughtup.demo.story.stage import DemoStage

_ENDS_TOPIC = "generated-end-offsets"
_KINDS = ("compacted", "scattered", "interleaved", "runs")
#: The kinds of logs in which each key comes once.
_ONCE = ("compacted", "scattered")
#: The groups of logs with repeated keys: as many as a large cluster has.
_GROUPS = 500
_QUEUE_FULL_SECONDS = 0.1
#: The records of the batch that warms the job up.
_WARMING = 500_000
_MEGABYTE = 1 << 20


@click.command(
    short_help="Measure the rate of the history job on Spark.",
    epilog=examples("caughtup bench history --records 1000000"),
)
@click.option(
    "--records",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1_000_000, 4_000_000),
    show_default=True,
    help="How many commits. May be repeated.",
)
@click.option(
    "--log",
    "kind",
    type=click.Choice(_KINDS),
    default="compacted",
    show_default=True,
    help="The contents of the log, as for `caughtup bench offsets`.",
)
@click.option(
    "--groups",
    type=click.IntRange(min=1),
    help=f"How many groups commit.  [default: {_GROUPS}; where each key occurs once, as many as are needed]",
)
@partitions_option
@threads_option
@format_option
def history(
    records: tuple[int, ...],
    kind: str,
    groups: int | None,
    partitions: int,
    threads: tuple[int, ...],
    output: str,
) -> None:
    """Measure how many commits a second the history takes, from a log to its tables.

    Writes generated offset commits and each partition's log end to an embedded broker. First Spark
    reads the commits with its Kafka source and discards them, once in a query and once in a stream;
    then the history job reads both from
    a new checkpoint, and writes every commit to two tables, commits and lag. Both jobs have run
    for a while before, so that Java has compiled them; the figures include the machine's load just
    before.
    """
    try:
        from caughtup.demo.fleet.offset_logs import Shape
        from caughtup.demo.story.stage import DemoStage
    except ImportError as error:
        raise not_in_checkout(error) from error
    figures: list[dict[str, object]] = []
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    try:
        for count in records:
            with DemoStage(nodes=1, broker_properties=properties) as stage:
                stage.start_cluster()
                of = groups or (-(-count // partitions) if kind in _ONCE else _GROUPS)
                written = _write(stage, kind, Shape(count, of, partitions))
                for number in threads:
                    figures.append({"log": kind, **_measure(stage, number, written)})
                    if output == "json":
                        click.echo(msgspec.json.encode(figures[-1]).decode())
    except CaughtupError as error:
        raise UserError(error.message) from error
    if output == "table":
        Console().print(history_table(figures))


def history_table(figures: Sequence[Figures]) -> Table:
    """Return the figures as a table."""
    table = Table(
        title="The history job, and Spark reading the same records to nowhere",
        caption="Generated commits, and looks at log ends. Raw: read once by Spark; ratio: to that, and to a stream "
        "into a noop sink. CPU: seconds for a million records. MB: resident at most, of "
        "the JVM and of Python's workers. Load: runnable processes just before.",
    )
    table.add_column("log")
    for name in (
        "records",
        "threads",
        "a second",
        "raw",
        "ratio",
        "of a stream",
        "CPU",
        "JVM MB",
        "Python MB",
    ):
        table.add_column(name, justify="right")
    table.add_column("load", justify="right")
    for one in figures:
        python = sum(resident for name, resident in one["peak_bytes"].items() if name != "java")
        table.add_row(
            one["log"],
            f"{one['records']:,}",
            f"{one['threads']}",
            f"{one['records_per_second']:,.0f}",
            f"{one['raw_records_per_second']:,.0f}",
            f"{one['ratio']:.2f}",
            f"{one['stream_ratio']:.2f}",
            f"{one['cpu_seconds_per_million']:,.1f}",
            f"{one['peak_bytes'].get('java', 0) / _MEGABYTE:,.0f}",
            f"{python / _MEGABYTE:,.0f}",
            f"{one['load']:.1f}",
        )
    return table


class RecordCounts(NamedTuple):
    """The numbers of records of commits, and of end offsets."""

    commits: int
    looks: int
    group_partitions: int


def topics_of(shape: Shape) -> list[str]:
    """Return the topics that the groups of a generated log read."""
    return [f"domain.orders-{number:05d}" for number in range(shape.topics)]


def _write(stage: DemoStage, kind: str, shape: Shape) -> RecordCounts:
    from caughtup.demo.cluster.topics import create_topics
    from caughtup.demo.fleet.offset_logs import write_log

    with Progress().task(f"writing a log: {kind}", shape.records) as advance:
        commits = write_log(
            stage.cluster, kind, shape, offsets_partitions=OFFSETS_PARTITIONS, advance=advance
        )
    create_topics(stage.cluster, {_ENDS_TOPIC: 1}, {"cleanup.policy": "compact"})
    producer = Producer({**stage.cluster.client_config(), "linger.ms": 50})
    ends = EndOffsets(0, shape.records, shape.records, 1)
    looks = 0
    with Progress().task("writing looks at log ends", shape.topics * shape.partitions) as advance:
        for partition in starmap(
            TopicPartition, product(topics_of(shape), range(shape.partitions))
        ):
            record = EndOffsetsRecord.from_ends(partition, ends)
            while True:
                try:
                    producer.produce(_ENDS_TOPIC, FORMAT.encode(record), record.key)
                    break
                except BufferError:
                    producer.poll(_QUEUE_FULL_SECONDS)
            looks += 1
            advance(1)
        producer.flush()
    return RecordCounts(commits, looks, shape.groups * shape.partitions)


def _measure(stage: DemoStage, threads: int, written: RecordCounts) -> Figures:
    records = written.commits
    with running_spark("caughtup bench history", f"local[{threads}]") as spark:
        from deltalake import DeltaTable

        from caughtup.agents.kafka.log_ranges import LogRangeReader
        from caughtup.pipelines.history.stream import HistoryOptions
        from caughtup.pipelines.history.stream import history as write_history

        directory = stage.processes.directory / f"history-{threads}"
        broker = stage.cluster.pids
        warming, options = (
            HistoryOptions(
                stage.cluster.bootstrap_servers,
                str(directory / name / "tables"),
                str(directory / name / "checkpoint"),
                None,
                topics={"end_offsets": _ENDS_TOPIC},
                # Upkeep is once a day, and no part of the rate.
                upkeep=False,
                read=LogRangeReader(Settings(bootstrap_servers=stage.cluster.bootstrap_servers)),
            )
            for name in ("warming", "measured")
        )
        raw = _raw(spark, stage.cluster.bootstrap_servers)
        raw.count()
        few = replace(warming, records_per_batch=_WARMING)
        # Until a batch is done, when all code is compiled.
        done = Path(warming.checkpoint, "commits", "0")
        write_history(spark, few, done.exists)
        load = os.getloadavg()[0]
        raw_cpu, began = cpu_seconds(broker), time.perf_counter()
        raw.write.format("noop").mode("overwrite").save()
        raw_seconds, raw_cpu = time.perf_counter() - began, cpu_seconds(broker) - raw_cpu
        began = time.perf_counter()
        _stream_to_nowhere(spark, stage.cluster.bootstrap_servers, directory / "stream")
        stream_seconds = time.perf_counter() - began
        with PeakMemory(broker) as memory:
            cpu, began = cpu_seconds(broker), time.perf_counter()
            write_history(spark, options, lambda: False)
            seconds, cpu = time.perf_counter() - began, cpu_seconds(broker) - cpu
        rows = {
            name: DeltaTable(f"{options.output}/{name}").to_pyarrow_dataset().count_rows()
            for name in ("commits", "lag")
        }
    files = [path for path in Path(options.output).rglob("*.parquet") if path.is_file()]
    return {
        "records": records,
        "looks": written.looks,
        "group_partitions": written.group_partitions,
        "threads": threads,
        "seconds": seconds,
        "records_per_second": records / seconds,
        "raw_records_per_second": records / raw_seconds,
        "ratio": raw_seconds / seconds,
        "stream_records_per_second": records / stream_seconds,
        "stream_ratio": stream_seconds / seconds,
        "cpu_seconds_per_million": cpu / records * 1e6,
        "raw_cpu_seconds_per_million": raw_cpu / records * 1e6,
        "peak_bytes": memory.peaks,
        "rows": rows,
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "load": load,
    }


def _stream_to_nowhere(spark: SparkSession, servers: str, checkpoint: Path) -> None:
    """Read the log as the history's source would, in batches of as many records, and discard it."""
    from caughtup.pipelines.schema import RECORDS_PER_BATCH
    from caughtup.pipelines.spark.kafka_options import source_options
    from caughtup.pipelines.spark.sources import record_stream

    source = source_options(servers, {})
    records = record_stream(spark, [CONSUMER_OFFSETS], source, RECORDS_PER_BATCH, committed=False)
    writer = records.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def _raw(spark: SparkSession, servers: str) -> DataFrame:
    from caughtup.pipelines.generations.job import read_topic
    from caughtup.pipelines.spark.kafka_options import source_options

    return read_topic(spark, CONSUMER_OFFSETS, source_options(servers, {}))
