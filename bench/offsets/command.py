"""``caughtup bench offsets``: how fast the service reads a long ``__consumer_offsets``."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
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
from caughtup.bench.offsets.readers import (
    process_figures,
    read_alone,
    read_with_aiokafka,
    read_with_confluent_kafka,
)
from caughtup.bench.options import (
    beside_option,
    partitions_option,
    rounds_option,
    transactional_option,
)
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.fleet.offset_logs import Shape
    from caughtup.demo.processes.children import Process
    from caughtup.demo.story.stage import DemoStage

_MEGABYTE = 1 << 20
#: Kafka's own default.
OFFSETS_PARTITIONS = 50
_READ = re.compile(r"read __consumer_offsets: ([\d,]+) records in ([\d.]+) s")
_KINDS = ("compacted", "scattered", "interleaved", "runs")
#: Logs that have each key once.
_ONCE = ("compacted", "scattered")
#: The groups of logs with repeated keys: as many as a large cluster has.
_GROUPS = 500


@click.command(
    short_help="Measure the rate of reading __consumer_offsets.",
    epilog=examples("caughtup bench offsets"),
)
@click.option(
    "--log",
    "kinds",
    type=click.Choice(_KINDS),
    multiple=True,
    default=_KINDS,
    show_default=True,
    help="The contents of the log. May be repeated.",
)
@click.option(
    "--records",
    type=click.IntRange(min=1),
    default=3_000_000,
    show_default=True,
    help="How many records.",
)
@click.option(
    "--groups",
    type=click.IntRange(min=1),
    help=f"How many groups commit.  [default: {_GROUPS}; where each key occurs once, as many as are needed]",
)
@partitions_option
@click.option(
    "--value-version",
    "version",
    type=click.Choice(("1", "3", "4")),
    help="The version of all values. [default: a mixture of 1, 3 and 4, with tombstones]",
)
@transactional_option
@beside_option
@rounds_option
@format_option
def offsets(
    kinds: tuple[str, ...],
    records: int,
    groups: int | None,
    partitions: int,
    version: str | None,
    transactional: int,
    beside: Path | None,
    rounds: int,
    output: str,
) -> None:
    """Measure how fast the service reads a long __consumer_offsets, from its start to ready.

    Writes generated records to 50 partitions of an embedded broker, a new one for each log, ten
    records a batch, as members commit them. In a compacted log each key occurs once, the ten of a
    commit together, as the log cleaner leaves them; in a scattered log each key occurs once, in
    random order; in an interleaved log the keys of all groups repeat in turn; in runs the records
    of each group follow each other. If some groups commit in transactions, as applications with
    exactly_once_v2 do, all commit through the brokers, ten offsets at once, which takes minutes to
    write.

    First two client libraries, confluent-kafka and aiokafka, read the log, each in its own process
    and without decoding. Then `caughtup run` reads it and keeps its usual state.
    """
    try:
        from caughtup.demo.fleet.offset_logs import Shape
        from caughtup.demo.story.stage import DemoStage
    except ImportError as error:
        raise not_in_checkout(error) from error
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    found = []
    for kind in kinds:
        of = groups or (-(-records // partitions) if kind in _ONCE else _GROUPS)
        values = None if version is None else int(version)
        shape = Shape(records, of, partitions, values, transactional)
        stage = DemoStage(nodes=1, broker_properties=properties)
        figures = _measure(stage, kind, shape, [None, *([beside] if beside else [])], rounds)
        if output == "json":
            click.echo(msgspec.json.encode(figures).decode())
        found.append(figures)
    if output != "json":
        for figures in found:
            _show(figures)


def _measure(
    stage: DemoStage,
    kind: str,
    shape: Shape,
    checkouts: Sequence[Path | None],
    rounds: int,
) -> dict[str, object]:
    from caughtup.demo.fleet.offset_logs import write_log

    try:
        with stage:
            stage.start_cluster()
            with Progress().task(f"writing a log: {kind}", shape.records) as advance:
                written = write_log(
                    stage.cluster,
                    kind,
                    shape,
                    offsets_partitions=OFFSETS_PARTITIONS,
                    advance=advance,
                )
            servers = stage.cluster.bootstrap_servers
            raw = read_alone(read_with_confluent_kafka, servers, OFFSETS_PARTITIONS)
            aiokafka = read_alone(read_with_aiokafka, servers, OFFSETS_PARTITIONS)
            services = [_start(stage, turn, checkouts) for turn in range(rounds * len(checkouts))]
    except CaughtupError as error:
        raise UserError(error.message) from error
    ours, *beside = (_medians(services[turn :: len(checkouts)]) for turn in range(len(checkouts)))
    return {
        "log": kind,
        "records": written,
        "group_partitions": shape.groups * shape.partitions,
        "value_version": shape.version,
        "transactional_percent": shape.transactional,
        "raw": raw,
        "raw_aiokafka": aiokafka,
        "service": ours,
        "beside": dict(zip(map(str, checkouts[1:]), beside, strict=True)),
        "ratio": ours["records_per_second"] / raw["records_per_second"],
    }


def _start(stage: DemoStage, turn: int, checkouts: Sequence[Path | None]) -> dict[str, float]:
    """Measure the start of a service that has no topics of its own yet, and stop it."""
    name = f"bench-{turn}"
    began = time.monotonic()
    stage.start_service(
        checkouts[turn % len(checkouts)], application_id=name, topic_prefix=f"{name}-"
    )
    figures = {"ready_seconds": time.monotonic() - began, **_service_figures(stage.service)}
    stage.service.terminate()
    return figures


def _medians(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(one[name] for one in figures) for name in figures[0]}


def _show(figures: Figures) -> None:
    title = f"{figures['log']}: {figures['records']:,} records"
    title += f" of {figures['group_partitions']:,} group-partitions, start to end"
    if figures["transactional_percent"]:
        title += f", {figures['transactional_percent']} % of groups in transactions"
    headings = ("", "records/s", "CPU s a million", "peak MB", "MB at rest", "ready after s")
    table = Table(*headings, title=title)
    million = figures["records"] / 1e6
    rows = {
        "aiokafka alone": figures["raw_aiokafka"],
        "confluent-kafka alone": figures["raw"],
        "caughtup run": figures["service"],
        **figures["beside"],
    }
    for name, row in rows.items():
        table.add_row(
            name,
            f"{row['records_per_second']:,.0f}",
            f"{row['cpu_seconds'] / million:.2f}",
            f"{row['peak_bytes'] / _MEGABYTE:.0f}",
            f"{row['resident_bytes'] / _MEGABYTE:.0f}",
            f"{row['ready_seconds']:.1f}" if "ready_seconds" in row else "",
        )
    Console().print(table)
    click.echo(f"{figures['ratio']:.2f} of confluent-kafka's own rate")


def _service_figures(service: Process) -> dict[str, float]:
    """Return the rate that the service logged, and its CPU time and memory."""
    said = _READ.search(service.output())
    if said is None:
        raise UserError(f"the service did not log how fast it read; its log: {service.log}")
    return {
        "records_per_second": int(said[1].replace(",", "")) / float(said[2]),
        **process_figures(service.pid),
    }
