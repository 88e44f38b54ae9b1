"""``caughtup bench offsets``: how fast the service reads a long ``__consumer_offsets``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.bench.offsets.readers import (
    process_figures,
    read_alone,
    read_with_aiokafka,
    read_with_confluent_kafka,
)
from caughtup.bench.options import groups_option, partitions_option
from caughtup.models.errors import CaughtupError

_MEGABYTE = 1 << 20
#: Kafka's own default.
OFFSETS_PARTITIONS = 50
_READ = re.compile(r"read __consumer_offsets: ([\d,]+) records in ([\d.]+) s")


@click.command(short_help="The rate of reading __consumer_offsets.")
@click.option(
    "--records", type=click.IntRange(min=1), default=5_000_000, show_default=True, help="How many."
)
@groups_option
@partitions_option
@format_option
def offsets(records: int, groups: int, partitions: int, output: str) -> None:
    """Measure how fast the service reads a long __consumer_offsets, from its start to ready.

    Writes generated offset commits to 50 partitions of an embedded broker. First client libraries
    alone read them, each in a process of its own and decoding nothing: the one that the service
    reads with, and aiokafka. Then `caughtup run` does, with all that it keeps.
    """
    try:
        from caughtup.demo.fleet.offset_commits import write_commits
        from caughtup.demo.story.stage import Stage
    except ImportError as error:
        raise UserError(f"{error}; type: pip install 'caughtup[demo]'") from error
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    try:
        with Stage(nodes=1, broker_properties=properties) as stage:
            stage.start_cluster()
            with Progress().task("writing commits", records) as advance:
                written = write_commits(
                    stage.cluster,
                    records,
                    groups=groups,
                    partitions=partitions,
                    offsets_partitions=OFFSETS_PARTITIONS,
                    advance=advance,
                )
            servers = stage.cluster.bootstrap_servers
            raw = read_alone(read_with_confluent_kafka, servers, OFFSETS_PARTITIONS)
            aiokafka = read_alone(read_with_aiokafka, servers, OFFSETS_PARTITIONS)
            stage.start_service()
            ours = _service_figures(stage.service.log, stage.service.pid)
    except CaughtupError as error:
        raise UserError(error.message) from error
    figures = {
        "records": written,
        "group_partitions": groups * partitions,
        "raw": raw,
        "raw_aiokafka": aiokafka,
        "service": ours,
        "ratio": ours["records_per_second"] / raw["records_per_second"],
    }
    if output == "json":
        click.echo(msgspec.json.encode(figures).decode())
        return
    table = Table(
        "", "records/s", "CPU s", "peak MB", title=f"{written:,} offset commits, start to end"
    )
    rows = {"aiokafka alone": aiokafka, "confluent-kafka alone": raw, "caughtup run": ours}
    for name, row in rows.items():
        table.add_row(
            name,
            f"{row['records_per_second']:,.0f}",
            f"{row['cpu_seconds']:.1f}",
            f"{row['peak_bytes'] / _MEGABYTE:.0f}",
        )
    Console().print(table)
    click.echo(f"{figures['ratio']:.0%} of confluent-kafka's own rate, with which it reads")


def _service_figures(log: Path, pid: int) -> dict[str, Any]:
    """Return the rate that the service logs, and its CPU and memory as the system counts them."""
    said = _READ.search(log.read_text())
    if said is None:
        raise UserError(f"the service doesn't say how fast it read; its log: {log}")
    return {
        "records_per_second": int(said[1].replace(",", "")) / float(said[2]),
        **process_figures(pid),
    }
