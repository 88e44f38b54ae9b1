"""``caughtup bench footprint``: what the service costs at rest, while groups commit, and looked at."""

from __future__ import annotations

import statistics
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.bench.figures import Figures
from caughtup.bench.live_load import Load, again_and_again, committing, fill, records_read
from caughtup.bench.offsets.command import OFFSETS_PARTITIONS
from caughtup.bench.offsets.readers import process_figures
from caughtup.bench.options import (
    active_option,
    beside_option,
    commits_option,
    groups_option,
    partitions_option,
    rounds_option,
)
from caughtup.bench.other_tools import RunningTool, kminion_option, kminion_tool
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.story.stage import DemoStage

_MEGABYTE = 1 << 20
#: From the start of the commits until they are measured.
_FLOWING_SECONDS = 5.0
_READ_SECONDS = 60.0
#: The service's defaults; the demo's are shorter.
_INTERVALS = {"end_offsets_interval": "1", "reassignments_interval": "2"}
_positive = click.IntRange(min=1)


@click.command(
    short_help="Measure the service's CPU and memory at rest, live and looked at.",
    epilog=examples("caughtup bench footprint --groups 100 --settle 20 --seconds 20"),
)
@groups_option
@partitions_option
@active_option
@commits_option
@click.option(
    "--scrape-interval",
    type=click.FloatRange(min=0.1),
    default=15.0,
    show_default=True,
    help="Seconds from one scrape of /metrics to the next.",
)
@click.option(
    "--settle",
    type=click.FloatRange(min=0),
    default=130.0,
    show_default=True,
    help="Seconds from the service's start until it is measured.",
)
@click.option(
    "--seconds", type=_positive, default=45, show_default=True, help="How long each measurement is."
)
@beside_option
@kminion_option
@rounds_option
@format_option
def footprint(
    groups: int,
    partitions: int,
    active: int | None,
    commits: int,
    scrape_interval: float,
    settle: float,
    seconds: int,
    beside: Path | None,
    kminion: Path | None,
    rounds: int,
    output: str,
) -> None:
    """Measure the share of a core and the memory of `caughtup run`, a process of its own.

    The groups have commits on ten topics of an embedded broker; the active group-partitions have
    lag, the others none. /metrics is scraped all the time. Three measurements: at rest, with one
    page open on the overview, and while the active group-partitions commit. The commits that the
    service read are counted, since a busy machine may write fewer. kminion, which has no page, reads
    the offsets log, too.
    """
    try:
        from caughtup.demo.story.stage import DemoStage
    except ImportError as error:
        raise not_in_checkout(error) from error
    count = groups * partitions
    load = Load(groups, partitions, min(active or count, count), commits, 0)
    checkouts = [None, *([beside] if beside else [])]
    names = ["caughtup run", *map(str, checkouts[1:]), *(["kminion"] if kminion else [])]
    found: dict[str, list[Figures]] = {name: [] for name in names}
    try:
        with DemoStage(
            nodes=1, broker_properties={"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
        ) as stage:
            stage.start_cluster()
            fill(stage.cluster, load)
            measuring = _Measuring(stage, load, scrape_interval, settle, seconds)
            for turn in range(rounds):
                for place, checkout in enumerate(checkouts):
                    figures = measuring.service(f"bench-{turn}-{place}", checkout)
                    found[names[place]].append(figures)
                if kminion:
                    found["kminion"].append(measuring.kminion(kminion))
    except CaughtupError as error:
        raise UserError(error.message) from error
    ours, *others = rows = {name: _medians(figures) for name, figures in found.items()}
    if output == "json":
        beside_it = {name: rows[name] for name in others}
        figures = {**load._asdict(), "service": rows[ours], "beside": beside_it}
        click.echo(msgspec.json.encode(figures).decode())
        return
    _show(load, scrape_interval, rows)


class _Measuring:
    """Measures one tool after the other, from its start to its end."""

    def __init__(
        self, stage: DemoStage, load: Load, scrape_interval: float, settle: float, seconds: int
    ) -> None:
        self._stage = stage
        self._load = load
        self._scrape_interval = scrape_interval
        self._settle = settle
        self._seconds = seconds
        self._turns = 0

    def service(self, name: str, checkout: Path | None) -> Figures:
        """Start a service that has no topics of its own yet, measure and stop it."""
        stage = self._stage
        stage.start_service(checkout, application_id=name, topic_prefix=f"{name}-", **_INTERVALS)

        def read() -> float:
            return records_read(stage.metrics())

        try:
            return self._measured(stage.service.pid, self._scrape, read, self._look)
        finally:
            stage.service.terminate()

    def kminion(self, program: Path) -> Figures:
        """Start kminion, measure and stop it."""
        tool = kminion_tool(program, self._stage.cluster.bootstrap_servers, reads_log=True)
        running = RunningTool(tool, self._stage.processes)
        try:
            return self._measured(
                running.process.pid, lambda _: running.scrape(), running.records_read
            )
        finally:
            running.process.terminate()

    def _measured(
        self,
        pid: int,
        scrape: Callable[[threading.Event], object],
        read: Callable[[], float],
        look: Callable[[threading.Event], object] | None = None,
    ) -> Figures:
        """Return a process's figures: at rest, looked at, and live; ``read`` counts its records."""
        figures: Figures = {}
        with again_and_again(scrape, self._scrape_interval):
            time.sleep(self._settle)
            figures["rest_cores"] = self._cores(pid)
            if look is not None:
                with again_and_again(look, 0.0):
                    figures["page_cores"] = self._cores(pid)
            with committing(self._stage.cluster.bootstrap_servers, self._load, self._turns):
                time.sleep(_FLOWING_SECONDS)
                before, began = read(), time.monotonic()
                figures["live_cores"] = self._cores(pid)
                figures["commits_per_second"] = (read() - before) / (time.monotonic() - began)
        self._turns += self._load.turns(self._seconds + 2 * _FLOWING_SECONDS)
        return figures | process_figures(pid)

    def _cores(self, pid: int) -> float:
        """Return the share of a core that a process uses while this waits."""
        began = time.monotonic()
        used = process_figures(pid)["cpu_seconds"]
        time.sleep(self._seconds)
        used = process_figures(pid)["cpu_seconds"] - used
        return used / (time.monotonic() - began)

    def _scrape(self, _: threading.Event) -> None:
        headers = {"Accept-Encoding": "gzip"}
        request = urllib.request.Request(f"{self._stage.url}metrics", headers=headers)
        with urllib.request.urlopen(request, timeout=_READ_SECONDS) as answer:
            answer.read()

    def _look(self, ended: threading.Event) -> None:
        """Read an overview's events, as a page does."""
        address = f"{self._stage.url}api/events?view=overview"
        with urllib.request.urlopen(address, timeout=_READ_SECONDS) as events:
            for _ in events:
                if ended.is_set():
                    return


def _medians(figures: Sequence[Figures]) -> Figures:
    return {name: statistics.median(one[name] for one in figures) for name in figures[0]}


def _show(load: Load, scrape_interval: float, rows: dict[str, Figures]) -> None:
    title = f"{load.groups:,} groups × {load.partitions:,} partitions, {load.active:,} with lag; "
    title += f"/metrics every {scrape_interval:g} s; shares of a core"
    table = Table("", "at rest", "a page open", "live", "commits/s", "MB", "peak MB", title=title)
    for name, row in rows.items():
        table.add_row(
            name,
            *(_share(row.get(f"{when}_cores")) for when in ("rest", "page", "live")),
            f"{row['commits_per_second']:,.0f}",
            f"{row['resident_bytes'] / _MEGABYTE:.0f}",
            f"{row['peak_bytes'] / _MEGABYTE:.0f}",
        )
    Console().print(table)


def _share(cores: float | None) -> str:
    return "" if cores is None else f"{cores:.3f}"
