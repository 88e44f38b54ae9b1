"""``caughtup bench scrape``: /metrics of a service that knows many group-partitions."""

from __future__ import annotations

import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.bench_offsets import OFFSETS_PARTITIONS, process_figures
from caughtup.agents.errors import UserError
from caughtup.agents.options import format_option
from caughtup.agents.progress import Progress
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.stage import Stage

_MEGABYTE = 1 << 20
_CHUNK_BYTES = 1 << 20
#: The service looks at end offsets every second, and then assesses every group.
_SETTLE_SECONDS = 10.0
_READ_SECONDS = 300.0


@click.command(short_help="/metrics of many group-partitions.")
@click.option(
    "--groups", type=click.IntRange(min=1), default=500, show_default=True, help="How many."
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Partitions that each group commits.",
)
@click.option(
    "--scrapes", type=click.IntRange(min=1), default=5, show_default=True, help="How many."
)
@format_option
def scrape(groups: int, partitions: int, scrapes: int, output: str) -> None:
    """Measure scrapes of a service that knows many group-partitions.

    Every group has a commit on every partition of one topic of an embedded broker and lags on
    all of them. While a scrape is read, /ready is asked again and again: the longest that an
    answer takes is the longest that the service held anybody up.
    """
    try:
        from caughtup.demo.stage import Stage
    except ImportError as error:
        raise UserError(f"{error}; type: pip install 'caughtup[demo]'") from error
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    try:
        with Stage(nodes=1, broker_properties=properties) as stage:
            _fill(stage, groups, partitions)
            stage.start_service()
            time.sleep(_SETTLE_SECONDS)
            figures = _measure(stage, scrapes)
    except CaughtupError as error:
        raise UserError(error.message) from error
    figures["group_partitions"] = groups * partitions
    if output == "json":
        click.echo(msgspec.json.encode(figures).decode())
        return
    table = Table("", "", title=f"/metrics of {groups * partitions:,} group-partitions")
    for name, text in (
        ("median scrape", f"{figures['median_seconds']:.2f} s"),
        ("slowest scrape", f"{figures['max_seconds']:.2f} s"),
        ("body", f"{figures['body_bytes'] / _MEGABYTE:.1f} MB, {figures['series']:,} series"),
        ("longest wait for /ready, idle", f"{figures['idle_pause_seconds'] * 1000:.0f} ms"),
        ("longest wait for /ready, in a scrape", f"{figures['pause_seconds'] * 1000:.0f} ms"),
        ("resident memory", f"{figures['resident_bytes'] / _MEGABYTE:.0f} MB"),
        ("peak memory", f"{figures['peak_bytes'] / _MEGABYTE:.0f} MB"),
    ):
        table.add_row(name, text)
    Console().print(table)


def _fill(stage: Stage, groups: int, partitions: int) -> None:
    from caughtup.demo.load import produce
    from caughtup.demo.offset_commits import TOPIC, write_commits
    from caughtup.demo.topics import create_topics

    stage.start_cluster()
    create_topics(stage.cluster, {TOPIC: partitions})
    produce(stage.cluster, TOPIC, 100 * partitions, keys=100 * partitions)
    with Progress().task("writing commits", groups * partitions) as advance:
        write_commits(
            stage.cluster,
            groups * partitions,
            groups=groups,
            partitions=partitions,
            offsets_partitions=OFFSETS_PARTITIONS,
            advance=advance,
        )


def _measure(stage: Stage, scrapes: int) -> dict[str, Any]:
    with _longest_wait(f"{stage.url}ready") as idle:
        time.sleep(_SETTLE_SECONDS)
    seconds, body, series = [], 0, 0
    with _longest_wait(f"{stage.url}ready") as busy:
        for _ in range(scrapes):
            began = time.monotonic()
            body, series = _read(f"{stage.url}metrics")
            seconds.append(time.monotonic() - began)
    return {
        "median_seconds": statistics.median(seconds),
        "max_seconds": max(seconds),
        "body_bytes": body,
        "series": series,
        "idle_pause_seconds": idle[0],
        "pause_seconds": busy[0],
        **process_figures(stage.service.pid),
    }


def _read(url: str) -> tuple[int, int]:
    """Read a page as Prometheus does; give its length and the number of its series."""
    length = series = 0
    with urllib.request.urlopen(url, timeout=_READ_SECONDS) as answer:
        while chunk := answer.read(_CHUNK_BYTES):
            length += len(chunk)
            series += chunk.count(b"\n") - chunk.count(b"\n# ")
    return length, series


@contextmanager
def _longest_wait(url: str) -> Iterator[list[float]]:
    """Ask for a small page over and over meanwhile; the list holds the longest wait (s)."""
    longest = [0.0]
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.005):
            began = time.monotonic()
            with urllib.request.urlopen(url, timeout=_READ_SECONDS) as answer:
                answer.read()
            longest[0] = max(longest[0], time.monotonic() - began)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield longest
    finally:
        over.set()
        thread.join()
