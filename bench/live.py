"""``caughtup bench live``: what commits cost as they come, on a cluster with many group-partitions."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import time
from functools import partial
from itertools import product
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec
from confluent_kafka import TopicPartition as ClientTopicPartition
from rich.console import Console
from rich.table import Table

from caughtup.agents.app import create_app
from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.cli.run import prepare
from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.process.turns import collect_seldom
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.bench.figures import Figures
from caughtup.bench.loop.turns import LoopTurns, until
from caughtup.bench.offsets.readers import process_figures
from caughtup.bench.options import partitions_option, transactional_option
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState

if TYPE_CHECKING:
    from caughtup.demo.cluster.cluster import EmbeddedCluster
    from caughtup.demo.fleet.offset_commits import RawRecord

_MEGABYTE = 1 << 20
_OFFSETS_PARTITIONS = 50
_TOPICS = 10
#: The records of each partition; idle groups have committed its end.
_END_OFFSET = 100
_MARKER = "bench-live-marker"
_SAMPLE_SECONDS = 0.001
_SETTLE_SECONDS = 10.0
_MARK_SECONDS = 0.05
_FLUSH_SECONDS = 60.0
_AT_ONCE = 100_000
_positive = click.IntRange(min=1)


class Load(NamedTuple):
    """``groups`` × ``partitions`` have commits; ``active`` of them get ``commits`` more a second.

    A percentage of the groups is ``transactional``, with all that a group commits in one.
    """

    groups: int
    partitions: int
    active: int
    a_second: int
    transactional: int


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
    properties = {"offsets.topic.num.partitions": str(_OFFSETS_PARTITIONS)}
    try:
        with EmbeddedCluster(1, broker_properties=properties) as cluster:
            _fill(cluster, load)
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


def _fill(cluster: EmbeddedCluster, load: Load) -> None:
    """Create the topics, and the last commit of every group-partition."""
    from caughtup.demo.cluster.load import produce_empty
    from caughtup.demo.cluster.topics import create_topics
    from caughtup.demo.fleet.offset_commits import make_offsets_topic, write_records

    create_topics(cluster, dict.fromkeys(map(_topic, range(_TOPICS)), load.partitions))
    partitions = product(map(_topic, range(_TOPICS)), range(load.partitions))
    produce_empty(cluster, partitions, _END_OFFSET)
    make_offsets_topic(cluster)
    with Progress().task("writing commits", load.groups * load.partitions) as advance:
        count = load.groups * load.partitions
        for start in range(0, count, _AT_ONCE):
            keys = range(start, min(count, start + _AT_ONCE))
            write_records(cluster, [_commit(load, key, _last_offset(load, key)) for key in keys])
            advance(len(keys))


async def _measure(cluster: EmbeddedCluster, load: Load, seconds: int) -> Figures:
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers, web_port=0)
    with LoopTurns() as turns, TemporaryDirectory() as scratch:
        state = await asyncio.to_thread(prepare, settings)
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
                target=_write, args=(cluster.bootstrap_servers, load, stop), daemon=True
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
    found = state.commits.find(_MARKER, TopicPartition(_topic(0), 0))
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


def _write(bootstrap_servers: str, load: Load, stop: Event) -> None:
    """Write commits at their rate, with a marker at intervals, until ``stop`` is set."""
    from caughtup.demo.fleet.broker_commits import BrokerCommits, is_transactional
    from caughtup.demo.fleet.offset_commits import offsets_producer, produce_record

    commits, markers = (offsets_producer(bootstrap_servers, linger) for linger in (20, 0))
    began, written = time.monotonic(), 0
    with BrokerCommits(bootstrap_servers) as through_brokers:
        while not stop.is_set():
            for _ in range(int((time.monotonic() - began) * load.a_second) - written):
                turn, key = divmod(written, load.active)
                offset, written = _END_OFFSET // 2 + turn, written + 1
                partition, number = divmod(key, load.groups)
                if not load.transactional:
                    produce_record(commits, _commit(load, key, offset))
                elif partition == 0:  # with all of its active partitions
                    active = range((load.active - 1 - number) // load.groups + 1)
                    offsets = [ClientTopicPartition(_topic(number), p, offset) for p in active]
                    transactional = is_transactional(number, load.transactional)
                    through_brokers.commit(_group(number), offsets, in_transaction=transactional)
            produce_record(markers, _commit(load, 0, now_ms(), _MARKER))
            for producer in (commits, markers):
                producer.poll(0)
            time.sleep(_MARK_SECONDS)
    for producer in (commits, markers):
        producer.flush(_FLUSH_SECONDS)


def _commit(load: Load, key: int, offset: int, name: str | None = None) -> RawRecord:
    """Return the commit of a group-partition by number, or of a named group on the first one."""
    from caughtup.demo.fleet.offset_commits import (
        RawRecord,
        commit_key,
        commit_value,
    )

    # The active group-partitions are spread over all groups.
    partition, number = divmod(key, load.groups)
    group = name or _group(number)
    home = coordinator_partition(group, _OFFSETS_PARTITIONS)
    at_ms = now_ms()
    raw_key = commit_key(group, partition, _topic(number))
    return RawRecord(home, 0, at_ms, raw_key, commit_value(offset, at_ms))


def _last_offset(load: Load, key: int) -> int:
    """Return the previously committed offset; the end for idle groups."""
    return _END_OFFSET // 2 - 1 if key < load.active else _END_OFFSET


def _group(number: int) -> str:
    return f"bench-live-group-{number:06d}"


def _topic(number: int) -> str:
    return f"bench-live-{number % _TOPICS}"
