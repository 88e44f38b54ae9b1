"""``caughtup bench freshness``: how soon a commit shows in /metrics."""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec
from confluent_kafka import Consumer, KafkaException, TopicPartition
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.bench.figures import Figures
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.story.stage import DemoStage

_TOPIC, _GROUP = "bench", "bench-freshness"
_VISIBLE_SECONDS = 30.0


@click.command(
    short_help="Measure the time from a commit to /metrics.",
    epilog=examples("caughtup bench freshness --commits 50"),
)
@click.option(
    "--commits",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How many commits.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0),
    default=0.1,
    show_default=True,
    help="Seconds to wait after a commit was seen before the next one.",
)
@format_option
def freshness(commits: int, interval: float, output: str) -> None:
    """Measure how long after the broker's acknowledgement a commit shows in /metrics.

    One commit at a time, by a group without members; /metrics is scraped without a pause, so a
    figure includes the scrape that shows it.
    """
    try:
        from caughtup.demo.story.stage import DemoStage
    except ImportError as error:
        raise not_in_checkout(error) from error
    try:
        with DemoStage(nodes=1) as stage:
            stage.start_cluster()
            stage.start_service()
            figures = summary(list(_latencies(stage, commits, interval)))
    except CaughtupError as error:
        raise UserError(error.message) from error
    if output == "json":
        click.echo(msgspec.json.encode(figures).decode())
        return
    table = Table("", "milliseconds", title=f"Commit to /metrics, {commits} commits")
    for name in ("median", "p90", "p99", "max"):
        table.add_row(name, f"{figures[f'{name}_seconds'] * 1000:.0f}")
    Console().print(table)


def summary(seconds: list[float]) -> Figures:
    """Summarize latencies (s). Percentiles are by nearest rank."""
    ordered = sorted(seconds)

    def percentile(percent: int) -> float:
        return ordered[math.ceil(len(ordered) * percent / 100) - 1]

    return {
        "commits": len(ordered),
        "median_seconds": statistics.median(ordered),
        "p90_seconds": percentile(90),
        "p99_seconds": percentile(99),
        "max_seconds": ordered[-1],
    }


def _latencies(stage: DemoStage, commits: int, interval: float) -> Iterator[float]:
    from caughtup.demo.cluster.topics import create_topics

    create_topics(stage.cluster, {_TOPIC: 1})
    consumer = Consumer({**stage.cluster.client_config(), "group.id": _GROUP})
    try:
        for offset in range(commits + 1):
            consumer.commit(offsets=[TopicPartition(_TOPIC, 0, offset)], asynchronous=False)
            acknowledged = time.monotonic()
            _wait_visible(stage, offset, acknowledged + _VISIBLE_SECONDS)
            seconds = time.monotonic() - acknowledged
            if offset:  # the first commit also created the group
                yield seconds
            time.sleep(interval)
    except KafkaException as error:
        raise UserError(f"cannot commit: {error.args[0].str()}") from None
    finally:
        consumer.close()


def _wait_visible(stage: DemoStage, offset: int, deadline: float) -> None:
    sample = re.compile(
        rf'^caughtup_group_committed_offset{{[^}}]*group="{_GROUP}"[^}}]*}} {offset}(?:\.0)?$',
        re.MULTILINE,
    )
    while not sample.search(stage.metrics()):
        if time.monotonic() > deadline:
            raise UserError(f"the commit of {offset} isn't in /metrics after {_VISIBLE_SECONDS} s")
