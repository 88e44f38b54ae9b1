"""``caughtup pipeline``: the jobs on Spark, history, rates and generations."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from caughtup.agents.cli.commands import examples, missing_extra
from caughtup.agents.cli.options import Connection, connection_options, settings_of
from caughtup.agents.cli.pipeline_tables import keep_option
from caughtup.agents.configuration.s3_access import s3_variables
from caughtup.agents.errors import UserError
from caughtup.agents.process.logs import set_up_logging
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import topic_name
from caughtup.models.durations import counted
from caughtup.models.errors import CaughtupError
from caughtup.models.records.topics import (
    CATCH_UP_RATES,
    END_OFFSETS,
    PIPELINE_PROGRESS,
    TASK_POSITIONS,
)
from caughtup.models.security.kafka import KafkaClient
from caughtup.pipelines.schema import RECORDS_PER_BATCH, TABLE_TOPICS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The newest Java that Spark 4.0 supports.
_NEWEST_JAVA = 21


def start_spark(application: str, master: str | None) -> SparkSession:
    """Return a session on a master; None is all of this machine, or spark-submit's master.

    Raises UserError if Spark isn't installed, CaughtupError if it can't start.
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
    """Run Spark as ``start_spark`` does, until the context's end.

    Raises CaughtupError ``spark_failed`` if its JVM ends within the context.
    """
    spark = start_spark(application, master)
    from caughtup.pipelines.spark.session import report_dead_jvm, stop

    try:
        with report_dead_jvm(spark):
            yield spark
    finally:
        stop(spark)


def stop_on_signals() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set. Call it after Spark's start: that takes SIGINT."""
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stop.set())
    return stop


@click.command(
    short_help="Record the generations of Kafka Streams groups.",
    epilog=examples(
        "caughtup pipeline generations -b broker:9092 --output file:///data/generations"
    ),
)
@connection_options
@click.option("--output", required=True, metavar="URI", help="The table's directory.")
@click.option("--master", help="The Spark master. [default: local[*], or spark-submit's]")
def generations(output: str, master: str | None, connection: Connection) -> None:
    """Add the generations that Kafka still has to a Parquet table, and exit.

    Each row has the members, what they reported and were assigned, and the scenario from which the
    leader decided. The log of groups is compacted: run the command often enough to miss none.
    """
    settings = settings_of(connection, (KafkaClient.SPARK,))
    set_up_logging(settings.log_level, settings.log_format)
    try:
        count = _write_generations(settings, output, master)
    except CaughtupError as error:
        raise UserError(error.message) from error
    click.echo(f"wrote {counted(count, 'new generation')}")


def _write_generations(settings: Settings, output: str, master: str | None) -> int:
    with running_spark("caughtup generations", master) as spark:
        from caughtup.pipelines.generations.job import GenerationsOptions, write_generations

        options = GenerationsOptions(
            settings.bootstrap_servers,
            output,
            kafka_properties(settings),
            topic_name(settings, END_OFFSETS),
            settings.parameters(),
        )
        return write_generations(spark, options)


def kafka_properties(settings: Settings) -> dict[str, str]:
    """Return the settings' client properties as strings, as Spark's options are."""
    return {name: _text(value) for name, value in settings.kafka.items()}


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@click.command(
    short_help="Write what happens on the cluster to Delta Lake tables.",
    epilog=examples(
        "caughtup pipeline history -b broker:9092 --output file:///data/history --checkpoint file:///data/checkpoint"
    ),
)
@connection_options
@click.option("--output", required=True, metavar="URI", help="The tables' directory.")
@click.option(
    "--checkpoint", required=True, metavar="URI", help="Where the job stores its progress."
)
@click.option("--master", help="The Spark master. [default: local[*], or spark-submit's]")
@click.option(
    "--trigger-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    help="How often to write. Each write makes a version of the tables.",
)
@click.option(
    "--records-per-batch",
    type=click.IntRange(min=1),
    default=RECORDS_PER_BATCH,
    show_default=True,
    help="The most records in one batch.",
)
@keep_option
@click.option(
    "--upkeep/--no-upkeep",
    default=True,
    show_default=True,
    help="Once a day, merge small files into large ones, and remove files that no version needs.",
)
@click.option("--once", is_flag=True, help="Write what there is, and exit.")
def history(
    output: str,
    checkpoint: str,
    master: str | None,
    trigger_seconds: float,
    records_per_batch: int,
    keep: int | None,
    upkeep: bool,
    once: bool,
    connection: Connection,
) -> None:
    """Write what happens on the cluster to tables in Delta Lake, until it is stopped.

    The tables have every commit, listing of end offsets, change of lag, generation of a Kafka
    Streams group, movement, decision and observation of a reassignment; the table quarantine has
    records that cannot be decoded. Started again with the same checkpoint, the job continues where
    it stopped.
    """
    settings = settings_of(connection, (KafkaClient.SPARK,))
    set_up_logging(settings.log_level, settings.log_format)
    trigger = None if once else trigger_seconds
    try:
        _history(settings, output, checkpoint, master, trigger, records_per_batch, upkeep, keep)
    except CaughtupError as error:
        raise UserError(error.message) from error


def _history(
    settings: Settings,
    output: str,
    checkpoint: str,
    master: str | None,
    trigger: float | None,
    records_per_batch: int,
    upkeep: bool,
    keep: int | None,
) -> None:
    try:
        from caughtup.agents.kafka.log_ranges import reader_of
        from caughtup.pipelines.history.stream import HistoryOptions
        from caughtup.pipelines.history.stream import history as write_history
    except ImportError as error:
        raise missing_extra("spark", error) from error
    options = HistoryOptions(
        settings.bootstrap_servers,
        output,
        checkpoint,
        trigger,
        kafka_properties(settings),
        {table: topic_name(settings, name) for table, name in TABLE_TOPICS.items()},
        settings.parameters(),
        records_per_batch,
        topic_name(settings, PIPELINE_PROGRESS),
        upkeep,
        keep,
        s3_variables(settings),
        reader_of(settings),
    )
    with running_spark("caughtup history", master) as spark:
        write_history(spark, options, stop_on_signals().is_set)


@click.command(
    short_help="Measure how fast copies catch up.",
    epilog=examples("caughtup pipeline rates -b broker:9092 --checkpoint file:///data/checkpoint"),
)
@connection_options
@click.option(
    "--checkpoint", required=True, metavar="URI", help="Where the job stores its progress."
)
@click.option("--master", help="The Spark master. [default: local[*], or spark-submit's]")
@click.option(
    "--trigger-seconds",
    type=click.FloatRange(min=0, min_open=True, max=3_600),
    default=10,
    show_default=True,
    help="How often to read new records.",
)
@click.option("--once", is_flag=True, help="Process what is there, and exit.")
def rates(
    checkpoint: str, master: str | None, trigger_seconds: float, once: bool, connection: Connection
) -> None:
    """Measure how fast copies restore and changelogs grow, until it is stopped.

    The job computes rates over 1, 5 and 15 minutes from the positions that applications report,
    and writes them to the topic of catch-up rates, from which the service takes its estimates
    while the job runs. Started again with the same checkpoint, the job continues where it stopped.
    """
    settings = settings_of(connection, (KafkaClient.SPARK,))
    set_up_logging(settings.log_level, settings.log_format)
    try:
        _measure(settings, checkpoint, master, trigger_seconds, once=once)
    except CaughtupError as error:
        raise UserError(error.message) from error


def _measure(
    settings: Settings, checkpoint: str, master: str | None, trigger_seconds: float, *, once: bool
) -> None:
    with running_spark("caughtup rates", master) as spark:
        from caughtup.pipelines.rates.stream import RatesOptions, catch_up_rates

        options = RatesOptions(
            settings.bootstrap_servers,
            checkpoint,
            trigger_seconds,
            topic_name(settings, TASK_POSITIONS),
            topic_name(settings, END_OFFSETS),
            topic_name(settings, CATCH_UP_RATES),
            topic_name(settings, PIPELINE_PROGRESS),
            kafka_properties(settings),
            once,
        )
        catch_up_rates(spark, options, stop_on_signals().is_set)
