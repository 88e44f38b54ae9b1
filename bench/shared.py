"""``caughtup bench shared``: what each of several instances costs that share the groups."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.bench.figures import Figures, printed
from caughtup.bench.live_load import Load, committing, fill, records_read
from caughtup.bench.offsets.command import OFFSETS_PARTITIONS
from caughtup.bench.offsets.readers import process_figures
from caughtup.bench.options import (
    active_option,
    commits_option,
    groups_option,
    partitions_option,
)
from caughtup.bench.other_tools import RunningTool, kminion_option, kminion_tool
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.processes.children import Process
    from caughtup.demo.story.stage import DemoStage

_MEGABYTE = 1 << 20
_POLL_SECONDS, _ANSWER_SECONDS, _SHARED_SECONDS = 0.2, 120.0, 300.0
#: From the start of the commits until they are measured.
_FLOWING_SECONDS = 5.0
_HELD = re.compile(r"^caughtup_offsets_held_partitions\{[^}]*\} ([\d.e+]+)$", re.MULTILINE)
_positive = click.IntRange(min=1)


@click.command(
    short_help="Measure the CPU and memory of instances that share the groups.",
    epilog=examples("caughtup bench shared --groups 3000 --instances 1 --instances 2"),
)
@groups_option
@partitions_option
@click.option(
    "--instances",
    type=click.IntRange(1, 16),
    multiple=True,
    default=(1, 2, 3),
    show_default=True,
    help="How many share the groups. May be repeated.",
)
@active_option
@commits_option
@click.option(
    "--settle",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds from when all have their share until they are measured.",
)
@click.option(
    "--seconds", type=_positive, default=30, show_default=True, help="How long each measurement is."
)
@kminion_option
@format_option
def shared(
    groups: int,
    partitions: int,
    instances: Sequence[int],
    active: int | None,
    commits: int,
    settle: float,
    seconds: int,
    kminion: Path | None,
    output: str,
) -> None:
    """Measure each of several instances of `caughtup run` with workers = "shared".

    The groups have commits on ten topics of an embedded broker, keys in turn; the active
    group-partitions have lag. The instances start one after another, each once the groups are
    shared evenly. Two measurements of each: at rest, and while the active group-partitions commit.
    Nothing scrapes meanwhile. All run on this machine: what they take of each other counts. kminion
    reads the same log afterwards, alone.
    """
    try:
        from caughtup.demo.story.stage import DemoStage
    except ImportError as error:
        raise not_in_checkout(error) from error
    count = groups * partitions
    load = Load(groups, partitions, min(active or count, count), commits, 0)
    try:
        with DemoStage(
            nodes=1, broker_properties={"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
        ) as stage:
            stage.start_cluster()
            fill(stage.cluster, load)
            measured = _measured(stage, load, instances, settle, seconds, kminion)
            printed(measured, output, _table)
    except CaughtupError as error:
        raise UserError(error.message) from error


def _measured(
    stage: DemoStage,
    load: Load,
    instances: Sequence[int],
    settle: float,
    seconds: int,
    program: Path | None,
) -> Iterator[Figures]:
    """Yield the figures of each instance of each fleet, and those of kminion."""
    turns = 0
    for count in instances:
        fleet = _Fleet(stage, f"bench-shared-{count}")
        try:
            for _ in range(count):
                took = fleet.begin()
            time.sleep(settle)
            used = _used(stage, load, turns, fleet.processes, fleet.read, seconds)
            turns += load.turns(seconds + 2 * _FLOWING_SECONDS)
            held = fleet.held()
            for number, figures in enumerate(used):
                yield {
                    **load._asdict(),
                    "instances": count,
                    "instance": number,
                    "held_partitions": held[number],
                    "shared_seconds": took,
                    **figures,
                }
        finally:
            fleet.close()
    if program is not None:
        running = RunningTool(
            kminion_tool(program, stage.cluster.bootstrap_servers, reads_log=True), stage.processes
        )
        time.sleep(settle)
        (figures,) = _used(
            stage, load, turns, [running.process], lambda: [running.records_read()], seconds
        )
        running.process.terminate()
        yield {
            **load._asdict(),
            "instances": "kminion",
            "held_partitions": OFFSETS_PARTITIONS,
            "shared_seconds": running.ready_seconds,
            **figures,
        }


def _used(
    stage: DemoStage,
    load: Load,
    turns: int,
    processes: Sequence[Process],
    read: Callable[[], Sequence[float]],
    seconds: int,
) -> list[Figures]:
    """Return what each process uses at rest and live; ``read`` counts the records of each."""
    rest = _cores(processes, seconds)
    with committing(stage.cluster.bootstrap_servers, load, turns):
        time.sleep(_FLOWING_SECONDS)
        before, began = read(), time.monotonic()
        live = _cores(processes, seconds)
        after, lasted = read(), time.monotonic() - began
    return [
        {
            "rest_cores": rest[number],
            "live_cores": live[number],
            "commits_per_second": (after[number] - before[number]) / lasted,
            **process_figures(process.pid),
        }
        for number, process in enumerate(processes)
    ]


def _cores(processes: Sequence[Process], seconds: int) -> list[float]:
    """Return the share of a core that each process uses while this waits."""
    before = [process_figures(one.pid)["cpu_seconds"] for one in processes]
    time.sleep(seconds)
    after = [process_figures(one.pid)["cpu_seconds"] for one in processes]
    return [(now - then) / seconds for now, then in zip(after, before, strict=True)]


class _Fleet:
    """Instances with the same settings, each with a port of its own."""

    def __init__(self, stage: DemoStage, name: str) -> None:
        self._stage = stage
        self._name = name
        self._ports: list[int] = []
        self.processes: list[Process] = []

    def begin(self) -> float:
        """Start an instance; return the seconds until the partitions are shared evenly."""
        from caughtup.demo.processes.children import free_ports
        from caughtup.demo.story.stage import caughtup_command

        processes, (port,) = self._stage.processes, free_ports(1)
        file = processes.directory / f"{self._name}-{port}.toml"
        file.write_text(
            f'bootstrap_servers = "{self._stage.cluster.bootstrap_servers}"\n'
            f'application_id = "{self._name}"\ntopic_prefix = "{self._name}-"\n'
            f'workers = "shared"\nweb_port = {port}\nmetrics_granularity = "group"\n'
        )
        command = [*caughtup_command(), "run", "--config", str(file)]
        self.processes.append(processes.start(f"{self._name}-{port}", command))
        self._ports.append(port)
        began = time.monotonic()
        while not self._is_even():
            if (
                time.monotonic() - began > _SHARED_SECONDS
                or self.processes[-1].exit_code is not None
            ):
                raise CaughtupError("bench_failed", "the instances did not share the groups")
            time.sleep(_POLL_SECONDS)
        return time.monotonic() - began

    def close(self) -> None:
        """End all instances."""
        for process in self.processes:
            process.terminate()

    def held(self) -> list[int]:
        """Return how many partitions of ``__consumer_offsets`` each instance has."""
        found = (_HELD.search(self._metrics(port)) for port in self._ports)
        return [int(float(one[1])) if one else 0 for one in found]

    def read(self) -> list[float]:
        """Return the number of records that each instance has read."""
        return [records_read(self._metrics(port)) for port in self._ports]

    def _is_even(self) -> bool:
        try:
            held = self.held()
            ready = [self._get(port, "ready") for port in self._ports]
        except OSError:
            return False
        return sum(held) == OFFSETS_PARTITIONS and max(held) - min(held) <= 1 and all(ready)

    def _metrics(self, port: int) -> str:
        return self._get(port, "metrics")

    @staticmethod
    def _get(port: int, what: str) -> str:
        address = f"http://127.0.0.1:{port}/{what}"
        with urllib.request.urlopen(address, timeout=_ANSWER_SECONDS) as answer:
            text: bytes = answer.read()
        return text.decode()


def _table(figures: Sequence[Figures]) -> Table:
    first = figures[0]
    title = f"{first['groups']:,} groups × {first['partitions']:,} partitions, "
    title += f"{first['active']:,} with lag; shares of a core"
    headings = ("instances", "partitions", "at rest", "live", "commits/s", "MB", "peak MB", "s")
    table = Table(*headings, title=title)
    for row in figures:
        table.add_row(
            str(row["instances"]),
            str(row["held_partitions"]),
            f"{row['rest_cores']:.3f}",
            f"{row['live_cores']:.3f}",
            f"{row['commits_per_second']:,.0f}",
            f"{row['resident_bytes'] / _MEGABYTE:.0f}",
            f"{row['peak_bytes'] / _MEGABYTE:.0f}",
            f"{row['shared_seconds']:.1f}",
        )
    return table
