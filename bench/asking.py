"""``caughtup bench asking``: what it costs to ask coordinators about every group."""

from __future__ import annotations

import re
import threading
import time
from itertools import product
from typing import TYPE_CHECKING

import click
import msgspec
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
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

_TOPICS = 10
_END_OFFSET = 100
_MEGABYTE = 1 << 20
_POSITIVE = click.IntRange(min=1)
_REQUESTS = re.compile(r"^caughtup_source_requests_total\{[^}]*\} ([\d.e+]+)$", re.MULTILINE)
_ROUND = re.compile(r"^caughtup_source_round_seconds\{[^}]*\} ([\d.e+-]+)$", re.MULTILINE)


@click.command(
    short_help="Measure what it costs to ask coordinators about every group.",
    epilog=examples("caughtup bench asking --groups 100 --interval 10 --seconds 30"),
)
@groups_option
@partitions_option
@click.option(
    "--interval",
    "intervals",
    type=click.FloatRange(min=1),
    multiple=True,
    default=(10.0,),
    show_default=True,
    help="Seconds in which every group is asked about once; may be given several times.",
)
@click.option(
    "--moving",
    type=click.IntRange(0, 100),
    default=10,
    show_default=True,
    help="The percentage of the groups that commit all their partitions again in each interval.",
)
@click.option(
    "--seconds", type=_POSITIVE, default=60, show_default=True, help="How long each measurement is."
)
@format_option
def asking(
    groups: int,
    partitions: int,
    intervals: tuple[float, ...],
    moving: int,
    seconds: int,
    output: str,
) -> None:
    """Measure `caughtup run` with source = ask: its requests, CPU and memory, and the broker's CPU.

    The groups commit through an embedded broker on ten topics, and have no members. Beside it, a client
    of librdkafka asks for the same once: it takes one request for each group's offsets.
    """
    try:
        from caughtup.demo.story.stage import DemoStage
    except ImportError as error:
        raise not_in_checkout(error) from error
    rows: list[Figures] = []
    try:
        with DemoStage(
            nodes=1, broker_properties={"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
        ) as stage:
            stage.start_cluster()
            _fill(stage, groups, partitions)
            rows += [
                _measured(stage, groups, partitions, interval, moving, seconds)
                for interval in intervals
            ]
            rows.append(_by_librdkafka(stage))
    except CaughtupError as error:
        raise UserError(error.message) from error
    if output == "json":
        figures = {"groups": groups, "partitions": partitions, "moving": moving, "rows": rows}
        click.echo(msgspec.json.encode(figures).decode())
        return
    title = f"{groups:,} groups × {partitions:,} partitions, {moving} % commit in each interval"
    table = Table(
        "", "requests a round", "a minute", "round (s)", "core", "broker's core", "MB", title=title
    )
    for row in rows:
        table.add_row(
            str(row["name"]),
            f"{row['requests']:,.0f}",
            f"{row['a_minute']:,.0f}" if "a_minute" in row else "",
            f"{row['round_seconds']:.2f}",
            f"{row['cores']:.3f}" if "cores" in row else "",
            f"{row['broker_cores']:.3f}" if "broker_cores" in row else "",
            f"{row['resident_bytes'] / _MEGABYTE:.0f}" if "resident_bytes" in row else "",
        )
    Console().print(table)


def _topic(group: int) -> str:
    return f"bench-{group % _TOPICS}"


def _name(group: int) -> str:
    return f"bench-asking-{group:05}"


def _fill(stage: DemoStage, groups: int, partitions: int) -> None:
    """Create the topics, and commit on all partitions of each group through its coordinator."""
    from caughtup.demo.cluster.load import produce_empty
    from caughtup.demo.cluster.topics import create_topics

    create_topics(stage.cluster, dict.fromkeys(map(_topic, range(_TOPICS)), partitions))
    produce_empty(
        stage.cluster, product(map(_topic, range(_TOPICS)), range(partitions)), _END_OFFSET
    )
    with Progress().task("committing", groups) as advance:
        _commit(stage, range(groups), partitions, _END_OFFSET, advance)


def _commit(
    stage: DemoStage, groups: range, partitions: int, offset: int, advance: object = None
) -> None:
    from caughtup.demo.fleet.broker_commits import BrokerCommits

    with BrokerCommits(stage.cluster.bootstrap_servers) as commits:
        for group in groups:
            places = [TopicPartition(_topic(group), n, offset) for n in range(partitions)]
            commits.commit(_name(group), places, in_transaction=False)
            if callable(advance):
                advance(1)


def _measured(
    stage: DemoStage, groups: int, partitions: int, interval: float, moving: int, seconds: int
) -> Figures:
    """Start a service that has no topics of its own yet, measure and stop it."""
    name = f"asking-{interval:g}"
    stage.start_service(
        application_id=name, topic_prefix=f"{name}-", source="ask", ask_interval=f"{interval:g}"
    )
    ended = threading.Event()
    active = range(groups * moving // 100)

    def move() -> None:
        offset = 0
        while not ended.wait(interval):
            offset = (offset + 1) % _END_OFFSET
            _commit(stage, active, partitions, offset)

    mover = threading.Thread(target=move, daemon=True)
    mover.start()
    try:
        time.sleep(max(2 * interval, 20.0))
        broker = min(stage.cluster.pids)
        before = _requests(stage)
        began, used = time.monotonic(), [_cpu(pid) for pid in (stage.service.pid, broker)]
        time.sleep(max(seconds, 2 * interval))
        took = time.monotonic() - began
        service_cpu, broker_cpu = (
            _cpu(pid) - spent for pid, spent in zip((stage.service.pid, broker), used, strict=True)
        )
        asked = _requests(stage) - before
        figures = process_figures(stage.service.pid)
        found = _ROUND.search(stage.metrics())
    finally:
        ended.set()
        mover.join()
        stage.service.terminate()
    return {
        "name": f"caughtup, every {interval:g} s",
        "requests": asked * interval / took,
        "a_minute": asked * 60 / took,
        "round_seconds": float(found[1]) if found else 0.0,
        "cores": service_cpu / took,
        "broker_cores": broker_cpu / took,
        "resident_bytes": figures["resident_bytes"],
    }


def _cpu(pid: int) -> float:
    return float(process_figures(pid)["cpu_seconds"])


def _requests(stage: DemoStage) -> float:
    return sum(map(float, _REQUESTS.findall(stage.metrics())))


def _by_librdkafka(stage: DemoStage) -> Figures:
    """Ask for the same once by librdkafka's AdminClient, many groups at a time."""
    admin = AdminClient({"bootstrap.servers": stage.cluster.bootstrap_servers})
    began, spent = time.monotonic(), time.process_time()
    listed = admin.list_consumer_groups(request_timeout=60).result()
    names = [one.group_id for one in listed.valid]
    described = admin.describe_consumer_groups(names, request_timeout=60)
    offsets = [
        admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(one)], request_timeout=60)
        for one in names
    ]
    for future in described.values():
        future.result()
    for asked in offsets:
        for future in asked.values():
            future.result()
    took, used = time.monotonic() - began, time.process_time() - spent
    return {
        "name": f"librdkafka's AdminClient, once ({used:.2f} CPU-s)",
        "requests": 1 + 2 * len(names),
        "round_seconds": took,
    }
