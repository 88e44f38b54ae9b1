"""``caughtup bench live``: what commits cost as they come, on a cluster with many group-partitions."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.app import create_app
from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.cli.run import prepare
from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.process.turns import collect_seldom
from caughtup.agents.settings import Settings
from caughtup.bench.figures import Figures
from caughtup.bench.live_load import MARKER, Load, fill, topic_of, write
from caughtup.bench.loop.turns import LoopTurns, until
from caughtup.bench.offsets.command import OFFSETS_PARTITIONS
from caughtup.bench.offsets.readers import process_figures
from caughtup.bench.options import partitions_option, transactional_option
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState

if TYPE_CHECKING:
    from caughtup.demo.cluster.cluster import EmbeddedCluster

_MEGABYTE = 1 << 20
_SAMPLE_SECONDS = 0.001
_SETTLE_SECONDS = 10.0
_positive = click.IntRange(min=1)


@click.command(
    short_help="Measure the work on live commits, among many group-partitions.",
    epilog=examples("caughtup bench live --groups 1000"),
)
@click.option(
    "--groups", type=_positive, default=10_000, show_default=True, help="How many groups."
)
@partitions_option
@click.option(
    "--active", type=_positive, default=50_000, show_default=True, help="Group-partitions."
)
@click.option(
    "--commits", type=_positive, default=5_000, show_default=True, help="Commits a second."
)
@click.option(
    "--seconds", type=_positive, default=60, show_default=True, help="How long to commit."
)
@transactional_option
@format_option
def live(
    groups: int,
    partitions: int,
    active: int,
    commits: int,
    seconds: int,
    transactional: int,
    output: str,
) -> None:
    """Measure what live commits cost the service, beside many group-partitions at rest.

    The commits are on ten topics of an embedded broker, whose partitions' log ends are listed
    meanwhile. The service runs in this process; another process writes the commits. An age is the
    time from sending a commit until the service's figures have it. A turn is one callback of the
    event loop, in CPU time of its own thread.
    """
    try:
        from caughtup.demo.cluster.cluster import EmbeddedCluster
    except ImportError as error:
        raise not_in_checkout(error) from error
    load = Load(groups, partitions, min(active, groups * partitions), commits, transactional)
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    try:
        with EmbeddedCluster(1, broker_properties=properties) as cluster:
            fill(cluster, load)
            collect_seldom()
            figures = asyncio.run(_measure(cluster, load, seconds))
    except CaughtupError as error:
        raise UserError(error.message) from error
    if output == "json":
        click.echo(msgspec.json.encode(figures).decode())
        return
    title = f"{commits:,} commits/s, {load.active:,} of {groups * partitions:,} group-partitions"
    table = Table("", "", title=title)
    table.add_row("share of a core", f"{figures['cores']:.3f}")
    table.add_row("… before the first commit", f"{figures['cores_at_rest']:.3f}")
    table.add_row("longest turn of the loop", f"{1000 * figures['longest_seconds']:.1f} ms")
    for name in ("median", "p99", "max"):
        table.add_row(f"age, {name}", f"{1000 * figures[f'age_{name}_seconds']:.1f} ms")
    table.add_row("memory", f"{figures['resident_bytes'] / _MEGABYTE:.0f} MB")
    Console().print(table)


async def _measure(cluster: EmbeddedCluster, load: Load, seconds: int) -> Figures:
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers, web_port=0)
    with LoopTurns() as turns, TemporaryDirectory() as scratch:
        settings, state = await asyncio.to_thread(prepare, settings)
        wired = create_app(settings, state, Path(scratch))
        await asyncio.sleep(0)
        await wired.app.start()
        try:
            await until(partial(getattr, wired.health, "ready"), "the service is ready")
            await asyncio.sleep(_SETTLE_SECONDS)
            at_rest = await _cores(_SETTLE_SECONDS)
            context = multiprocessing.get_context("spawn")
            stop = context.Event()
            writer = context.Process(
                target=write, args=(cluster.bootstrap_servers, load, stop), daemon=True
            )
            writer.start()
            await until(partial(_marked_ms, state), "the first commit is read")
            ages: list[float] = []
            sampled = asyncio.create_task(asyncio.to_thread(_sample, state, seconds, ages))
            turns.reset()
            cores = await _cores(seconds)
            longest = turns.longest
            await sampled
            stop.set()
            await asyncio.to_thread(writer.join)
        finally:
            await wired.app.stop()
    ages.sort()
    return {
        **load._asdict(),
        "cores": cores,
        "cores_at_rest": at_rest,
        "longest_seconds": longest.seconds,
        "of": longest.what,
        "age_median_seconds": statistics.median(ages),
        "age_p99_seconds": ages[len(ages) * 99 // 100],
        "age_max_seconds": ages[-1],
        **process_figures(os.getpid()),
    }


async def _cores(seconds: float) -> float:
    """Return the share of a core that this process uses during ``seconds``."""
    began, used = time.monotonic(), time.process_time()
    await asyncio.sleep(seconds)
    return (time.process_time() - used) / (time.monotonic() - began)


def _marked_ms(state: ClusterState) -> int:
    """Return when the newest marker commit in the state was sent (ms), 0 before the first."""
    found = state.commits.find(MARKER, TopicPartition(topic_of(0), 0))
    return 0 if found is None else found.committed


def _sample(state: ClusterState, seconds: float, ages: list[float]) -> None:
    """Record the age of each marker when it is in the state."""
    until_seconds, last = time.monotonic() + seconds, _marked_ms(state)
    while time.monotonic() < until_seconds:
        marked = _marked_ms(state)
        if marked != last:
            ages.append((now_ms() - marked) / 1000)
            last = marked
        time.sleep(_SAMPLE_SECONDS)
