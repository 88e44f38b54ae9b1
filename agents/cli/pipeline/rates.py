"""``caughtup pipeline rates``: catch-up rates, measured on Spark for the service to use."""

from __future__ import annotations

from typing import Any

import click

from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.options import connection_options, settings_of
from caughtup.agents.cli.pipeline.generations import kafka_properties
from caughtup.agents.cli.pipeline.spark import running_spark, stop_on_signals
from caughtup.agents.cli.run import set_up_logging
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import topic_name
from caughtup.models.errors import CaughtupError
from caughtup.models.records.topics import (
    CATCH_UP_RATES,
    END_OFFSETS,
    PIPELINE_PROGRESS,
    TASK_POSITIONS,
)
from caughtup.models.security.kafka import KafkaClient


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
    checkpoint: str, master: str | None, trigger_seconds: float, once: bool, **connection: Any
) -> None:
    """Measure how fast copies restore and changelogs grow, until it is stopped.

    Over 1, 5 and 15 minutes, from the positions that applications report, onto the topic of
    catch-up rates: the service takes its estimates from there while this runs. Started again with
    the same checkpoint it goes on where it was.
    """
    settings = settings_of(connection, (KafkaClient.SPARK,))
    set_up_logging(settings.log_level)
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
