"""``caughtup bench offsets``: how fast the service reads a long ``__consumer_offsets``."""

from __future__ import annotations

import re
import time
from pathlib import Path

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
from caughtup.bench.options import partitions_option, transactional_option
from caughtup.models.errors import CaughtupError

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
@format_option
def offsets(
    kinds: tuple[str, ...],
    records: int,
    groups: int | None,
    partitions: int,
    version: str | None,
    transactional: int,
    output: str,
) -> None:
    """Measure how fast the service reads a long __consumer_offsets, from its start to ready.

    Writes generated records to 50 partitions of an embedded broker, a new one for each log, ten
    records a batch, as members commit them. In a compacted log each key occurs once, the ten of a
    commit together, as the log cleaner leaves them; in a scattered log each key occurs once, in
    random order; in an interleaved log the keys of all groups repeat in turn; in runs the records
    of each group follow each other. Groups that commit in transactions do so by ten offsets,
    through the brokers, as applications with exactly_once_v2.

    First two client libraries, confluent-kafka and aiokafka, read the log, each in its own process
    and without decoding. Then `caughtup run` reads it and keeps its usual state.
    """
    found = []
    for kind in kinds:
        of = groups or (-(-records // partitions) if kind in _ONCE else _GROUPS)
        values = None if version is None else int(version)
        figures = _measure(kind, records, of, partitions, values, transactional)
        if output == "json":
            click.echo(msgspec.json.encode(figures).decode())
        found.append(figures)
    if output != "json":
        for figures in found:
            _show(figures)


def _measure(
    kind: str,
    records: int,
    groups: int,
    partitions: int,
    version: int | None,
    transactional: int,
) -> dict[str, object]:
    try:
        from caughtup.demo.fleet.offset_logs import Shape, write_log
        from caughtup.demo.story.stage import DemoStage
    except ImportError as error:
        raise not_in_checkout(error) from error
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    try:
        with DemoStage(nodes=1, broker_properties=properties) as stage:
            stage.start_cluster()
            with Progress().task(f"writing a log: {kind}", records) as advance:
                written = write_log(
                    stage.cluster,
                    kind,
                    Shape(records, groups, partitions, version, transactional),
                    offsets_partitions=OFFSETS_PARTITIONS,
                    advance=advance,
                )
            servers = stage.cluster.bootstrap_servers
            raw = read_alone(read_with_confluent_kafka, servers, OFFSETS_PARTITIONS)
            aiokafka = read_alone(read_with_aiokafka, servers, OFFSETS_PARTITIONS)
            began = time.monotonic()
            stage.start_service()
            ready_seconds = time.monotonic() - began
            ours = _service_figures(stage.service.log, stage.service.pid)
    except CaughtupError as error:
        raise UserError(error.message) from error
    return {
        "log": kind,
        "records": written,
        "group_partitions": groups * partitions,
        "value_version": version,
        "transactional_percent": transactional,
        "raw": raw,
        "raw_aiokafka": aiokafka,
        "service": {**ours, "ready_seconds": ready_seconds},
        "ratio": ours["records_per_second"] / raw["records_per_second"],
    }


def _show(figures: Figures) -> None:
    title = f"{figures['log']}: {figures['records']:,} records"
    title += f" of {figures['group_partitions']:,} group-partitions, start to end"
    if figures["transactional_percent"]:
        title += f", {figures['transactional_percent']} % of groups in transactions"
    table = Table("", "records/s", "CPU s a million", "peak MB", "MB at rest", title=title)
    million = figures["records"] / 1e6
    rows = {
        "aiokafka alone": figures["raw_aiokafka"],
        "confluent-kafka alone": figures["raw"],
        "caughtup run": figures["service"],
    }
    for name, row in rows.items():
        table.add_row(
            name,
            f"{row['records_per_second']:,.0f}",
            f"{row['cpu_seconds'] / million:.2f}",
            f"{row['peak_bytes'] / _MEGABYTE:.0f}",
            f"{row['resident_bytes'] / _MEGABYTE:.0f}",
        )
    Console().print(table)
    ready = figures["service"]["ready_seconds"]
    click.echo(
        f"{figures['ratio']:.2f} of confluent-kafka's own rate; "
        f"{ready:.1f} s from its start to ready"
    )


def _service_figures(log: Path, pid: int) -> Figures:
    """Return the rate that the service logged, and its CPU time and memory."""
    said = _READ.search(log.read_text())
    if said is None:
        raise UserError(f"the service did not log how fast it read; its log: {log}")
    return {
        "records_per_second": int(said[1].replace(",", "")) / float(said[2]),
        **process_figures(pid),
    }
