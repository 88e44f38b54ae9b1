"""``caughtup pipeline generations``: what each generation was decided from, into a table."""

from __future__ import annotations

from typing import Any

import click

from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.options import connection_options, settings_of
from caughtup.agents.cli.pipeline.spark import running_spark
from caughtup.agents.cli.run import set_up_logging
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import topic_name
from caughtup.models.durations import counted
from caughtup.models.errors import CaughtupError
from caughtup.models.records.topics import END_OFFSETS
from caughtup.models.security.kafka import KafkaClient


@click.command(
    short_help="Record the generations of Kafka Streams groups.",
    epilog=examples(
        "caughtup pipeline generations -b broker:9092 --output file:///data/generations"
    ),
)
@connection_options
@click.option("--output", required=True, metavar="URI", help="The table's directory.")
@click.option("--master", help="The Spark master. [default: local[*], or spark-submit's]")
def generations(output: str, master: str | None, **connection: Any) -> None:
    """Add the generations that Kafka still has to a Parquet table, and exit.

    Each row has the members, what they reported and were assigned, and the scenario from which the
    leader decided. The log of groups is compacted: run the command often enough to miss none.
    """
    settings = settings_of(connection, (KafkaClient.SPARK,))
    set_up_logging(settings.log_level)
    try:
        count = _write(settings, output, master)
    except CaughtupError as error:
        raise UserError(error.message) from error
    click.echo(f"wrote {counted(count, 'new generation')}")


def _write(settings: Settings, output: str, master: str | None) -> int:
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
    """Return the settings' client properties as texts, which is what Spark's options are."""
    return {name: _text(value) for name, value in settings.kafka.items()}


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
