"""``caughtup bench scrape``: /metrics of a service that knows many group-partitions."""

from __future__ import annotations

import multiprocessing
import statistics
import time
import urllib.request
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.bench.figures import Figures
from caughtup.bench.offsets.command import OFFSETS_PARTITIONS
from caughtup.bench.offsets.readers import process_figures
from caughtup.bench.options import groups_option, partitions_option
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.story.stage import DemoStage

_MEGABYTE = 1 << 20
_CHUNK_BYTES = 1 << 20
#: The rounds of commits after which the service knows each group's interval, and all figures.
_ROUNDS = 4
_SETTLE_SECONDS = 10.0
_IDLE_SECONDS = 10.0
_ASK_SECONDS = 0.005
_READ_SECONDS = 300.0


@click.command(
    short_help="Measure /metrics with many group-partitions.",
    epilog=examples("caughtup bench scrape --groups 100"),
)
@groups_option
@partitions_option
@click.option(
    "--scrapes", type=click.IntRange(min=1), default=5, show_default=True, help="How many scrapes."
)
@click.option(
    "--granularity",
    type=click.Choice(["partition", "topic", "group"]),
    default="partition",
    show_default=True,
    help="The service's metrics_granularity.",
)
@format_option
def scrape(groups: int, partitions: int, scrapes: int, granularity: str, output: str) -> None:
    """Measure scrapes of a service that knows many group-partitions.

    Every group has commits on every partition of one topic of an embedded broker and lags on all
    of them. Meanwhile another process asks for /ready again and again over one connection: the
    longest time to an answer is about the longest time for which the service's event loop was
    blocked.
    """
    try:
        from caughtup.demo.cluster.load import produce
        from caughtup.demo.cluster.topics import create_topics
        from caughtup.demo.fleet.offset_commits import TOPIC
        from caughtup.demo.story.stage import DemoStage
    except ImportError as error:
        raise not_in_checkout(error) from error
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    try:
        settings = {"metrics_granularity": granularity}
        with DemoStage(nodes=1, broker_properties=properties, settings=settings) as stage:
            stage.start_cluster()
            create_topics(stage.cluster, {TOPIC: partitions})
            produce(stage.cluster, TOPIC, 100 * partitions, keys=100 * partitions)
            _commit(stage, groups, partitions, rounds=1)
            stage.start_service()
            _commit(stage, groups, partitions, rounds=_ROUNDS)
            _wait_assessed(stage.url)
            figures = _measure(stage, scrapes)
    except CaughtupError as error:
        raise UserError(error.message) from error
    figures["group_partitions"] = groups * partitions
    if output == "json":
        click.echo(msgspec.json.encode(figures).decode())
        return
    table = Table("", "", title=f"/metrics of {groups * partitions:,} group-partitions")
    for name, text in (
        ("series", f"{figures['series']:,}"),
        *_rows("as it is", figures["plain"]),
        *_rows("in gzip", figures["gzip"]),
        ("no scrape: longest wait for /ready", _wait(figures["idle"])),
        ("resident memory", f"{figures['resident_bytes'] / _MEGABYTE:.0f} MB"),
        ("peak memory", f"{figures['peak_bytes'] / _MEGABYTE:.0f} MB"),
    ):
        table.add_row(name, text)
    Console().print(table)


def _rows(how: str, figures: Figures) -> Iterator[tuple[str, str]]:
    yield f"{how}: median scrape", f"{figures['median_seconds']:.2f} s"
    yield f"{how}: slowest scrape", f"{figures['max_seconds']:.2f} s"
    yield f"{how}: the service's whole CPU time", f"{figures['cpu_seconds']:.2f} s"
    yield f"{how}: body", f"{figures['body_bytes'] / _MEGABYTE:.1f} MB"
    yield f"{how}: longest wait for /ready", _wait(figures)


def _wait(figures: Mapping[str, float]) -> str:
    wait, machine = (1000 * figures[name] for name in ("wait_seconds", "machine_wait_seconds"))
    return f"{wait:.0f} ms (for a core: {machine:.0f} ms)"


def _commit(stage: DemoStage, groups: int, partitions: int, rounds: int) -> None:
    from caughtup.demo.fleet.offset_commits import write_commits

    commits = rounds * groups * partitions
    with Progress().task("writing commits", commits) as advance:
        write_commits(
            stage.cluster,
            commits,
            groups=groups,
            partitions=partitions,
            offsets_partitions=OFFSETS_PARTITIONS,
            advance=advance,
        )


def _wait_assessed(url: str) -> None:
    """Scrape until the number of series no longer grows: then every group is assessed."""
    before, series = -1, 0
    while series > before:
        time.sleep(_SETTLE_SECONDS)
        before, (_, series) = series, _read(f"{url}metrics", "gzip")


def _measure(stage: DemoStage, scrapes: int) -> Figures:
    with _longest_wait(stage.web_port) as idle:
        time.sleep(_IDLE_SECONDS)
    figures: dict[str, object] = {"idle": _waits(idle)}
    for name, encoding in (("plain", "identity"), ("gzip", "gzip")):
        seconds, body = [], 0
        used = process_figures(stage.service.pid)["cpu_seconds"]
        with _longest_wait(stage.web_port) as busy:
            for _ in range(scrapes):
                began = time.monotonic()
                body, figures["series"] = _read(f"{stage.url}metrics", encoding)
                seconds.append(time.monotonic() - began)
        figures[name] = {
            "median_seconds": statistics.median(seconds),
            "max_seconds": max(seconds),
            "cpu_seconds": (process_figures(stage.service.pid)["cpu_seconds"] - used) / scrapes,
            "body_bytes": body,
            **_waits(busy),
        }
    return {**figures, **process_figures(stage.service.pid)}


def _waits(longest: Sequence[float]) -> dict[str, float]:
    return dict(zip(("wait_seconds", "machine_wait_seconds"), longest, strict=True))


def _read(url: str, encoding: str) -> tuple[int, int]:
    """Read a page like Prometheus; return the length of the body and the number of series."""
    length = series = 0
    plain = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    request = urllib.request.Request(url, headers={"Accept-Encoding": encoding})
    with urllib.request.urlopen(request, timeout=_READ_SECONDS) as answer:
        while chunk := answer.read(_CHUNK_BYTES):
            length += len(chunk)
            text = plain.decompress(chunk) if encoding == "gzip" else chunk
            series += text.count(b"\n") - text.count(b"# ")
    return length, series


@contextmanager
def _longest_wait(port: int) -> Iterator[list[float]]:
    """Request a small page repeatedly inside the context; then the list has the longest wait (s).

    In a process of its own, which is not delayed by reading scrapes. The second figure is that
    process's longest wait for a processor.
    """
    longest: list[float] = []
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_ask, args=(port, theirs))
    process.start()
    theirs.close()
    try:
        ours.recv()
        yield longest
        ours.send("enough")
        longest.extend(ours.recv())
    except EOFError:
        raise UserError("the process that asks for /ready failed") from None
    finally:
        ours.close()
        process.join()


def _ask(port: int, commands: Connection) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=_READ_SECONDS)
    longest = asleep = 0.0
    try:
        commands.send("asking")
        began = time.monotonic()
        while not commands.poll(_ASK_SECONDS):
            woken = time.monotonic()
            asleep = max(asleep, woken - began - _ASK_SECONDS)
            connection.request("GET", "/ready")
            connection.getresponse().read()
            began = time.monotonic()
            longest = max(longest, began - woken)
        commands.send((longest, asleep))
    finally:
        connection.close()
        commands.close()
