"""``caughtup bench offsets``: how fast the service reads a long ``__consumer_offsets``."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import resource
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import click
import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from rich.console import Console
from rich.table import Table

from caughtup.agents.errors import UserError
from caughtup.agents.offsets import CONSUMER, MAX_RECORDS
from caughtup.agents.options import format_option
from caughtup.agents.progress import Progress
from caughtup.agents.topics import CONSUMER_OFFSETS
from caughtup.models.errors import CaughtupError

_MEGABYTE = 1 << 20
#: Kafka's own default.
OFFSETS_PARTITIONS = 50
_MEMORY = re.compile(r"^(VmHWM|VmRSS):\s+(\d+) kB$", re.MULTILINE)
_READ = re.compile(r"read __consumer_offsets: ([\d,]+) records in ([\d.]+) s")


@click.command(short_help="The rate of reading __consumer_offsets.")
@click.option(
    "--records", type=click.IntRange(min=1), default=5_000_000, show_default=True, help="How many."
)
@click.option(
    "--groups", type=click.IntRange(min=1), default=500, show_default=True, help="Of how many."
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Partitions that each group commits.",
)
@format_option
def offsets(records: int, groups: int, partitions: int, output: str) -> None:
    """Measure how fast the service reads a long __consumer_offsets, from its start to ready.

    Writes generated offset commits to 50 partitions of an embedded broker. First the client
    library alone reads them, in a process of its own and decoding nothing; then `caughtup run`
    does, with all that it keeps.
    """
    try:
        from caughtup.demo.offset_commits import write_commits
        from caughtup.demo.stage import Stage
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
            raw = _read_raw(stage.cluster.bootstrap_servers)
            stage.start_service()
            ours = _service_figures(stage.service.log, stage.service.pid)
    except CaughtupError as error:
        raise UserError(error.message) from error
    figures = {
        "records": written,
        "group_partitions": groups * partitions,
        "raw": raw,
        "service": ours,
        "ratio": ours["records_per_second"] / raw["records_per_second"],
    }
    if output == "json":
        click.echo(msgspec.json.encode(figures).decode())
        return
    table = Table(
        "", "records/s", "CPU s", "peak MB", title=f"{written:,} offset commits, start to end"
    )
    for name, row in (("client library alone", raw), ("caughtup run", ours)):
        table.add_row(
            name,
            f"{row['records_per_second']:,.0f}",
            f"{row['cpu_seconds']:.1f}",
            f"{row['peak_bytes'] / _MEGABYTE:.0f}",
        )
    Console().print(table)
    click.echo(f"{figures['ratio']:.0%} of the client library's own rate")


def _read_raw(bootstrap_servers: str) -> dict[str, Any]:
    """Read everything once with the service's consumer and drop it, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_raw_reader, args=(bootstrap_servers, theirs))
    process.start()
    theirs.close()
    try:
        figures: dict[str, Any] = ours.recv()
    except EOFError:
        raise UserError("the reader of the client library's own rate failed") from None
    finally:
        process.join()
    return figures


def _raw_reader(bootstrap_servers: str, results: Connection) -> None:
    try:
        results.send(asyncio.run(_drain(bootstrap_servers)))
    finally:
        results.close()


async def _drain(bootstrap_servers: str) -> dict[str, Any]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, **CONSUMER)
    await consumer.start()
    try:
        partitions = [TopicPartition(CONSUMER_OFFSETS, p) for p in range(OFFSETS_PARTITIONS)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        began, records = time.monotonic(), 0
        while any([await consumer.position(p) < end for p, end in ends.items()]):
            polled = await consumer.getmany(timeout_ms=500, max_records=MAX_RECORDS)
            records += sum(map(len, polled.values()))
        seconds = time.monotonic() - began
    finally:
        await consumer.stop()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "records_per_second": records / seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
    }


def _service_figures(log: Path, pid: int) -> dict[str, Any]:
    """Take the service's own word for its rate, and the system's for CPU and memory."""
    said = _READ.search(log.read_text())
    if said is None:
        raise UserError(f"the service doesn't say how fast it read; its log: {log}")
    return {
        "records_per_second": int(said[1].replace(",", "")) / float(said[2]),
        **process_figures(pid),
    }


def process_figures(pid: int) -> dict[str, Any]:
    """Give what a process has used so far: seconds of CPU, bytes of memory now and at most."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    memory = {name: int(kilobytes) for name, kilobytes in _MEMORY.findall(status)}
    return {
        "cpu_seconds": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        "peak_bytes": memory["VmHWM"] * 1024,
        "resident_bytes": memory["VmRSS"] * 1024,
    }
