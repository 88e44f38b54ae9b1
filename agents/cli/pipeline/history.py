"""``caughtup pipeline history``: what happens on the cluster, into Delta Lake tables."""

from __future__ import annotations

from typing import Any

import click

from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.extras import missing_extra
from caughtup.agents.cli.options import connection_options, settings_of
from caughtup.agents.cli.pipeline.days import keep_option
from caughtup.agents.cli.pipeline.generations import kafka_properties
from caughtup.agents.cli.pipeline.spark import running_spark, stop_on_signals
from caughtup.agents.cli.run import set_up_logging
from caughtup.agents.configuration.s3_access import s3_variables
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import topic_name
from caughtup.models.errors import CaughtupError
from caughtup.models.records.topics import PIPELINE_PROGRESS
from caughtup.models.security.kafka import KafkaClient
from caughtup.pipelines.schema import RECORDS_PER_BATCH, TABLE_TOPICS


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
    help="Once a day, make few files of many, and remove those that no version needs.",
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
    **connection: Any,
) -> None:
    """Write what happens on the cluster to tables in Delta Lake, until it is stopped.

    Every commit, look at end offsets, change of lag, generation of a Kafka Streams group,
    movement, decision and look at a reassignment; what can't be decoded is in the table
    quarantine. Started again with the same checkpoint it goes on where it was.
    """
    settings = settings_of(connection, (KafkaClient.SPARK,))
    set_up_logging(settings.log_level)
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
    )
    with running_spark("caughtup history", master) as spark:
        write_history(spark, options, stop_on_signals().is_set)
