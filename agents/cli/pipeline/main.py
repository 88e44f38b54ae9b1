"""``caughtup pipeline``: the jobs on Spark."""

from __future__ import annotations

import click

from caughtup.agents.cli.lazy import LazyCommand, LazyGroup


@click.group(cls=LazyGroup, short_help="Run the jobs on Spark.")
def pipeline() -> None:
    """Run jobs on Spark: record the history of a cluster, and use it."""


for origin, short_help in (
    ("caughtup.agents.cli.pipeline.compact:compact", "Make few files of many in the history."),
    (
        "caughtup.agents.cli.pipeline.convert:convert",
        "Make Delta Lake tables of the history of 0.1.",
    ),
    (
        "caughtup.agents.cli.pipeline.generations:generations",
        "Record the generations of Kafka Streams groups.",
    ),
    (
        "caughtup.agents.cli.pipeline.history:history",
        "Write what happens on the cluster to Delta Lake tables.",
    ),
    ("caughtup.agents.cli.pipeline.rates:rates", "Measure how fast copies catch up."),
):
    pipeline.add_command(LazyCommand(origin, short_help))
