"""``caughtup pipeline``: the jobs on Spark."""

from __future__ import annotations

import signal
import threading
from typing import Any

import click

from caughtup.agents.errors import UserError
from caughtup.agents.generations_command import generations, kafka_properties
from caughtup.agents.options import connection_options, settings_of
from caughtup.agents.run_command import set_up_logging
from caughtup.agents.settings import Settings
from caughtup.agents.spark import start_spark
from caughtup.agents.topics import END_OFFSETS, topic_name
from caughtup.models.errors import CaughtupError


@click.group(short_help="Run the jobs on Spark.")
def pipeline() -> None:
    """Run jobs on Spark: the history of commits, end offsets and lag, and of generations."""


pipeline.add_command(generations)


@pipeline.command()
@connection_options
@click.option("--output", required=True, metavar="URI", help="The table's directory.")
@click.option(
    "--checkpoint", required=True, metavar="URI", help="Where the job keeps how far it is."
)
@click.option("--master", help="The Spark master. [default: local[*], or spark-submit's]")
@click.option(
    "--trigger-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    help="How often to write: each time makes at most four files.",
)
@click.option("--once", is_flag=True, help="Write what there is, and exit.")
def history(
    output: str,
    checkpoint: str,
    master: str | None,
    trigger_seconds: float,
    once: bool,
    **connection: Any,
) -> None:
    """Write every change of lag to a Parquet table, until told to stop.

    Started again with the same checkpoint it goes on where it was.
    """
    settings = settings_of(connection)
    set_up_logging(settings.log_level)
    try:
        _history(settings, output, checkpoint, master, None if once else trigger_seconds)
    except CaughtupError as error:
        raise UserError(error.message) from error


def _history(
    settings: Settings, output: str, checkpoint: str, master: str | None, trigger: float | None
) -> None:
    try:
        from caughtup.pipelines.history import HistoryOptions
        from caughtup.pipelines.history import history as write_history
    except ImportError as error:
        raise UserError(f"{error}; type: pip install 'caughtup[spark]'") from error
    options = HistoryOptions(
        settings.bootstrap_servers,
        output,
        checkpoint,
        trigger,
        kafka_properties(settings),
        topic_name(settings, END_OFFSETS),
    )
    spark = start_spark("caughtup history", master)
    try:
        write_history(spark, options, _stop_on_signals().is_set)
    finally:
        spark.stop()


def _stop_on_signals() -> threading.Event:
    """Stop in order on SIGINT and SIGTERM. Called after Spark's start, which takes SIGINT."""
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stop.set())
    return stop
