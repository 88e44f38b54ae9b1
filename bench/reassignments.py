"""``caughtup bench reassignments``: the time of rounds with many reassignments."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import msgspec
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.protocol.brokers import Purpose
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.requests import (
    DEBUGGING_REPLICA,
    list_offsets_call,
    list_reassignments_call,
)
from caughtup.agents.probes.reassignments import ReassignmentObserver
from caughtup.bench.figures import Figures
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition

if TYPE_CHECKING:
    from caughtup.demo.cluster.cluster import EmbeddedCluster

#: All partitions are reassigned to the last of three nodes, which is down, so that none ends.
_NODES, _DEAD = 3, 3
_PARTITIONS_EACH = 100
_BATCH = 1_000
_TICK_SECONDS = 0.001
#: The time-out: a busy machine takes long for thousands of new partitions.
_SECONDS = 300.0
#: Small index files for thousands of partitions: new ones are preallocated at full size.
_BROKERS = {"log.index.size.max.bytes": "4096"}


@click.command(
    short_help="Measure observations of many partitions that are reassigned.",
    epilog=examples("caughtup bench reassignments --partitions 1000"),
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    default=5_000,
    show_default=True,
    help="How many partitions are reassigned.",
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=10, show_default=True, help="How many rounds."
)
@format_option
def reassignments(partitions: int, rounds: int, output: str) -> None:
    """Measure rounds of observations of reassigned partitions to a broker that is dead.

    Each round is paired with the bare requests for reassignments and for the replicas' log ends,
    whose answers are not decoded: these show the time that the brokers alone take.
    """
    try:
        with _cluster(partitions) as cluster:
            # Print first: deleting the files of thousands of partitions takes long.
            _print(asyncio.run(_measure(cluster, partitions, rounds)), output)
    except CaughtupError as error:
        raise UserError(error.message) from error


def _print(figures: Figures, output: str) -> None:
    if output == "json":
        click.echo(msgspec.json.encode(figures).decode())
        return
    title = f"{figures['partitions']:,} reassigned partitions"
    table = Table("", "a round", "bare requests", title=title)
    for name, text in (
        ("median", "median_seconds"),
        ("slowest", "max_seconds"),
        ("CPU time, median", "cpu_seconds"),
        ("longest turn on the event loop", "turn_seconds"),
        ("longest wait for a turn", "wait_seconds"),
    ):
        table.add_row(name, *(f"{figures[of][text] * 1000:.0f} ms" for of in ("looks", "bare")))
    for name, text in (("requests", "requests"), ("most in flight", "in_flight")):
        table.add_row(name, *(str(figures[of][text]) for of in ("looks", "bare")))
    Console().print(table)


@contextmanager
def _cluster(partitions: int) -> Iterator[EmbeddedCluster]:
    try:
        from caughtup.demo.cluster.cluster import EmbeddedCluster
    except ImportError as error:
        raise not_in_checkout(error) from error
    with EmbeddedCluster(_NODES, broker_properties=_BROKERS) as cluster:
        _create_topics(cluster, partitions)
        cluster.kill_node(_DEAD)
        cluster.wait_ready(_SECONDS)
        yield cluster


def _create_topics(cluster: EmbeddedCluster, partitions: int) -> None:
    admin = AdminClient(cluster.client_config())
    for topic, count in _topics(partitions).items():
        replicas = [[1, 2] if number % 2 else [2, 1] for number in range(count)]
        new = NewTopic(topic, count, replica_assignment=replicas)
        try:
            admin.create_topics([new])[topic].result(_SECONDS)
        except KafkaException as error:
            raise UserError(f"cannot create {topic}: {error.args[0].str()}") from None


def _topics(partitions: int) -> dict[str, int]:
    """Distribute partitions over topics."""
    whole, rest = divmod(partitions, _PARTITIONS_EACH)
    sizes = [_PARTITIONS_EACH] * whole + ([rest] if rest else [])
    return {f"moving-{number}": size for number, size in enumerate(sizes)}


async def _measure(cluster: EmbeddedCluster, partitions: int, rounds: int) -> dict[str, object]:
    config = {"bootstrap_servers": cluster.bootstrap_servers, "client_id": "bench"}
    reassigned = [
        TopicPartition(topic, number)
        for topic, count in _topics(partitions).items()
        for number in range(count)
    ]
    async with ReassignmentObserver(config) as observer:
        for start in range(0, partitions, _BATCH):
            some = reassigned[start : start + _BATCH]
            await observer.protocol.alter_reassignments({p: [_DEAD, 1] for p in some})
        await _wait_all_seen(observer, partitions)
        asked: dict[str, Callable[[], Awaitable[object]]] = {
            "looks": observer.observe,
            "bare": lambda: _ask_barely(observer.protocol, reassigned),
        }
        seen: dict[str, list[dict[str, float]]] = {name: [] for name in asked}
        for _ in range(rounds):
            for name, ask in asked.items():
                seen[name].append(await _timed(observer.protocol, ask))
    return {"partitions": partitions} | {name: _summary(runs) for name, runs in seen.items()}


async def _wait_all_seen(observer: ReassignmentObserver, partitions: int) -> None:
    """Wait until all are listed, and every live replica has a log end."""
    deadline = time.monotonic() + _SECONDS
    while True:
        found = await observer.observe()
        seen = sum(set(observation.log_ends) == {1, 2} for observation in found.ongoing)
        if seen == partitions:
            return
        if time.monotonic() > deadline:
            raise UserError(f"of {partitions} partitions only {seen} are reassigned")


async def _ask_barely(protocol: ClusterProtocol, partitions: list[TopicPartition]) -> None:
    """Request the reassignments, then two brokers' log ends, and decode nothing."""
    connections = protocol.connections
    await connections.ask(1, list_reassignments_call(10_000), purpose=Purpose.FORWARDED)

    async def ask(broker: int) -> None:
        for start in range(0, len(partitions), _BATCH):
            await connections.ask(
                broker,
                list_offsets_call(partitions[start : start + _BATCH], replica=DEBUGGING_REPLICA),
            )

    await asyncio.gather(ask(1), ask(2))


async def _timed(
    protocol: ClusterProtocol, ask: Callable[[], Awaitable[object]]
) -> dict[str, float]:
    """Run it once; return seconds, CPU seconds, requests, and the longest block of the loop."""
    connections = protocol.connections
    connections.most_in_flight, requests = 0, connections.requests
    waits = asyncio.create_task(_longest_waits(stop := asyncio.Event()))
    await asyncio.sleep(0)
    wall, cpu = time.perf_counter(), time.process_time()
    await ask()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    stop.set()
    wait, turn = await waits
    return {
        "seconds": wall,
        "cpu_seconds": cpu,
        "requests": connections.requests - requests,
        "in_flight": connections.most_in_flight,
        "wait_seconds": wait,
        "turn_seconds": turn,
    }


async def _longest_waits(stop: asyncio.Event) -> tuple[float, float]:
    """Return the longest delay of a sleep, and the most CPU time (s) during one.

    On a busy machine only the event loop's own CPU time shows what blocked it.
    """
    wait = turn = 0.0
    while not stop.is_set():
        began, used = time.perf_counter(), time.thread_time()
        await asyncio.sleep(_TICK_SECONDS)
        wait = max(wait, time.perf_counter() - began - _TICK_SECONDS)
        turn = max(turn, time.thread_time() - used)
    return wait, turn


def _summary(runs: list[dict[str, float]]) -> dict[str, float]:
    return {
        "median_seconds": statistics.median(run["seconds"] for run in runs),
        "max_seconds": max(run["seconds"] for run in runs),
        "cpu_seconds": statistics.median(run["cpu_seconds"] for run in runs),
        "wait_seconds": max(run["wait_seconds"] for run in runs),
        "turn_seconds": max(run["turn_seconds"] for run in runs),
        "requests": max(run["requests"] for run in runs),
        "in_flight": max(run["in_flight"] for run in runs),
    }
