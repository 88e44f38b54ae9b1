"""``caughtup bench asking``: what it costs to ask coordinators about every group."""

from __future__ import annotations

import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
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
from caughtup.bench.live_load import again_and_again
from caughtup.bench.offsets.command import OFFSETS_PARTITIONS
from caughtup.bench.offsets.readers import process_figures
from caughtup.bench.options import groups_option, partitions_option
from caughtup.bench.other_tools import (
    BrokerRequests,
    OtherTool,
    RunningTool,
    klag_option,
    klag_tool,
    kminion_option,
    kminion_tool,
)
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.story.stage import DemoStage

_TOPICS = 10
_END_OFFSET = 100
_MEGABYTE = 1 << 20
_POSITIVE = click.IntRange(min=1)
#: The requests by which tools learn of groups and log ends. Others are needed by who commits, too.
_ASKING = (
    "ListGroups",
    "DescribeGroups",
    "ConsumerGroupDescribe",
    "StreamsGroupDescribe",
    "ShareGroupDescribe",
    "DescribeShareGroupOffsets",
    "OffsetFetch",
    "ListOffsets",
)
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
@kminion_option
@klag_option
@format_option
def asking(
    groups: int,
    partitions: int,
    intervals: tuple[float, ...],
    moving: int,
    seconds: int,
    kminion: Path | None,
    klag: str | None,
    output: str,
) -> None:
    """Measure `caughtup run` with source = ask: its requests, CPU and memory, and the broker's CPU.

    The groups commit through an embedded broker on ten topics, and have no members. /metrics is
    scraped once in each interval. The broker counts the requests for groups and log ends, if a JDK's
    jcmd is there. Beside it, a client of librdkafka asks for the same once: it takes one request
    for each group's offsets.
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
            measuring = _Measuring(stage, groups * moving // 100, partitions, seconds)
            for interval in intervals:
                rows.append(measuring.service(interval))
                tools = _others(stage, interval, kminion, klag)
                rows += [measuring.other(tool, interval) for tool in tools]
            rows.append(_by_librdkafka(stage))
    except CaughtupError as error:
        raise UserError(error.message) from error
    if output == "json":
        figures = {"groups": groups, "partitions": partitions, "moving": moving, "rows": rows}
        click.echo(msgspec.json.encode(figures).decode())
        return
    title = f"{groups:,} groups × {partitions:,} partitions, {moving} % commit in each interval"
    headings = ("", "requests a round", "a minute", "round (s)", "core", "broker's core", "MB")
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(
            str(row["name"]),
            *(_cell(row, name, f"{{:{form}}}") for name, form in _COLUMNS.items()),
            f"{row['resident_bytes'] / _MEGABYTE:.0f}" if "resident_bytes" in row else "",
        )
    Console().print(table)


_COLUMNS = {
    "requests": ",.0f",
    "a_minute": ",.0f",
    "round_seconds": ".2f",
    "cores": ".3f",
    "broker_cores": ".3f",
}


def _cell(row: Figures, name: str, form: str) -> str:
    return form.format(row[name]) if row.get(name) is not None else ""


def _others(
    stage: DemoStage, interval: float, program: Path | None, command: str | None
) -> Iterator[OtherTool]:
    servers = stage.cluster.bootstrap_servers
    if program is not None:
        yield kminion_tool(program, servers, reads_log=False)
    if command is not None:
        yield klag_tool(command, servers, interval)


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


class _Measuring:
    """Measures one tool after the other while some groups commit in each interval."""

    def __init__(self, stage: DemoStage, active: int, partitions: int, seconds: int) -> None:
        self._stage, self._partitions, self._seconds = stage, partitions, seconds
        self._active = range(active)
        self._requests: BrokerRequests | None = None
        with suppress(CaughtupError):  # no JDK: the requests are not counted
            self._requests = BrokerRequests(stage.cluster)

    def service(self, interval: float) -> Figures:
        """Measure a service that has no topics of its own yet."""
        stage, name = self._stage, f"asking-{interval:g}"
        stage.start_service(
            application_id=name, topic_prefix=f"{name}-", source="ask", ask_interval=f"{interval:g}"
        )
        try:
            figures = self._measured(stage.service.pid, lambda _: stage.metrics(), interval)
            found = _ROUND.search(stage.metrics())
        finally:
            stage.service.terminate()
        figures["name"] = f"caughtup, every {interval:g} s"
        figures["round_seconds"] = float(found[1]) if found else None
        return figures

    def other(self, tool: OtherTool, interval: float) -> Figures:
        """Measure another tool; a round is what a scrape takes."""
        running = RunningTool(tool, self._stage.processes)
        took: list[float] = []

        def scrape(_: threading.Event) -> None:
            began = time.monotonic()
            running.scrape()
            took.append(time.monotonic() - began)

        try:
            figures = self._measured(running.process.pid, scrape, interval)
        finally:
            running.process.terminate()
        figures["name"] = f"{tool.name}, every {interval:g} s"
        figures["round_seconds"] = statistics.median(took) if took else None
        return figures

    def _measured(
        self, pid: int, scrape: Callable[[threading.Event], object], interval: float
    ) -> Figures:
        """Return the figures of a process while groups commit and it is scraped."""
        broker, seconds = min(self._stage.cluster.pids), max(self._seconds, 2 * interval)
        with again_and_again(self._commit, interval), again_and_again(scrape, interval):
            time.sleep(max(2 * interval, 20.0))
            requests, used = self._asked(), [_cpu(pid), _cpu(broker)]
            began = time.monotonic()
            time.sleep(seconds)
            took = time.monotonic() - began
            cores, broker_cores = (
                (_cpu(one) - spent) / took for one, spent in zip((pid, broker), used, strict=True)
            )
            asked = {api: count - requests[api] for api, count in self._asked().items()}
            figures = process_figures(pid)
        counted = sum(asked.values()) / took if self._requests else None
        return {
            "requests": None if counted is None else counted * interval,
            "a_minute": None if counted is None else counted * 60,
            "requests_by_api": asked,
            "cores": cores,
            "broker_cores": broker_cores,
            "resident_bytes": figures["resident_bytes"],
        }

    def _asked(self) -> dict[str, int]:
        if self._requests is None:
            return {}
        counts = self._requests.count()
        return {api: counts.get(api, 0) for api in _ASKING}

    def _commit(self, _: threading.Event) -> None:
        self._offset = (self._offset + 1) % _END_OFFSET
        _commit(self._stage, self._active, self._partitions, self._offset)

    _offset = 0


def _cpu(pid: int) -> float:
    return float(process_figures(pid)["cpu_seconds"])


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
