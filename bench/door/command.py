"""``caughtup bench door``: what other clients get while some abuse the service's web port."""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.bench.door.abuses import ABUSES, abused
from caughtup.bench.door.crowd import Crowd, HttpAnswer
from caughtup.bench.figures import Figures, printed
from caughtup.bench.offsets.readers import process_figures
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.story.stage import DemoStage

_MEGABYTE = 1 << 20
#: Seconds between requests of /ready, between requests of /metrics, and of a scene.
_LOOK_SECONDS, _SCRAPE_SECONDS, _SCENE_SECONDS = 0.2, 5.0, 20.0
_WAIT_SECONDS = 60.0
#: The address of the abusive clients.
_THEIRS = "127.0.0.2"
_SETTLE_SECONDS = 5.0

#: The columns of the output that the table needs.
_TABLE_COLUMNS = 160


@click.command(
    short_help="Measure what other clients get while the web port is abused.",
    epilog=examples("caughtup bench door --processes 20 --tasks 100 --same-address"),
)
@click.option("--processes", type=click.IntRange(2), default=100, show_default=True)
@click.option("--tasks", type=click.IntRange(1), default=500, show_default=True)
@click.option("--same-address", is_flag=True, help="All clients have the same address.")
@format_option
def door(processes: int, tasks: int, same_address: bool, output: str) -> None:
    """Measure what other clients get while some abuse the service's web port.

    The abuses are half-open connections, requests whose clients leave, clients that never read and
    bytes that are not HTTP, one after the other and all at once. The service has a generated Kafka
    Streams group. Meanwhile /ready and /metrics are requested, and 50 clients wait for their
    answers.
    """
    try:
        from caughtup.bench.door.scene import staged
    except ImportError as error:
        raise not_in_checkout(error) from error
    try:
        with staged(processes, tasks) as stage:
            scenes = Scenes(stage, "127.0.0.1" if same_address else _THEIRS)
            figures = asyncio.run(scenes.play())
    except CaughtupError as error:
        raise UserError(error.message) from error
    title = f"{processes:,} processes x {tasks:,} tasks"
    printed(figures, output, partial(door_table, title=title), _TABLE_COLUMNS)


class Scenes:
    """Plays one abuse after another, and measures what other clients get."""

    def __init__(self, stage: DemoStage, theirs: str) -> None:
        self._stage = stage
        self._ours = Crowd(stage.web_port)
        self._theirs = theirs
        self._questions: list[str] = []

    async def play(self) -> list[Figures]:
        """Play all scenes; return the figures of each."""
        from caughtup.bench.door.scene import questions

        self._questions = await questions(self._ours, 1_050)
        one = await self._ours.ask(self._questions[0])
        if one.status != 200:
            raise CaughtupError("bench_failed", f"a request for safe got {one.status}")
        figures = [{"what": "a request for safe, alone", "seconds": one.seconds}]
        for what in ABUSES:
            figures.append(await self._scene(what, [what]))
            await asyncio.sleep(_SETTLE_SECONDS)
        figures.append(await self._scene("all of it at once", list(ABUSES)))
        await asyncio.sleep(4 * _SETTLE_SECONDS)
        figures.append(await self._scene("afterwards", []))
        return figures

    async def _scene(self, what: str, abuses: list[str]) -> Figures:
        log_bytes, used = self._log_bytes(), self._figures()
        patient, others = self._questions[:50], self._questions[50:]
        if not abuses:
            patient = []
        asked = (self._stage.web_port, self._theirs, others, abuses)
        async with abused(*asked):
            until = asyncio.get_running_loop().time() + _SCENE_SECONDS
            ready, scrapes, answers = await asyncio.gather(
                self._again("/ready", _LOOK_SECONDS, until),
                self._again("/metrics", _SCRAPE_SECONDS, until),
                self._ours.ask_all(patient, _WAIT_SECONDS),
            )
        after = self._figures()
        return {
            "what": what,
            "ready": _summary(ready),
            "scrapes": _summary(scrapes),
            "patient": _summary(answers),
            "cpu_seconds": after["cpu_seconds"] - used["cpu_seconds"],
            "resident_before_bytes": used["resident_bytes"],
            "resident_bytes": after["resident_bytes"],
            "log_bytes": self._log_bytes() - log_bytes,
        }

    async def _again(self, path: str, pause: float, until: float) -> list[HttpAnswer]:
        answers = []
        while asyncio.get_running_loop().time() < until:
            answers.append(await self._ours.ask(path, _WAIT_SECONDS / 6))
            await asyncio.sleep(pause)
        return answers

    def _figures(self) -> Figures:
        return process_figures(self._stage.service.pid)

    def _log_bytes(self) -> int:
        return len(self._stage.service.output())


def _summary(answers: list[HttpAnswer]) -> Figures:
    seconds = [one.seconds for one in answers] or [0.0]
    statuses = Counter(str(one.status) for one in answers)
    return {
        "statuses": dict(sorted(statuses.items())),
        "median_seconds": statistics.median(seconds),
        "max_seconds": max(seconds),
    }


def door_table(figures: Sequence[Figures], title: str) -> Table:
    """Return what other clients got during each abuse as a table."""
    load = Path("/proc/loadavg").read_text().split()[0]
    table = Table("", title=f"The web port: {title}, load {load}")
    for column in (
        "/ready, median and most",
        "/metrics",
        "50 waiting clients",
        "CPU",
        "memory",
        "log",
    ):
        table.add_column(column)
    first, *scenes = figures
    table.add_row(first["what"], "", "", f"{first['seconds']:.2f} s", "", "", "")
    for one in scenes:
        memory = [one[name] / _MEGABYTE for name in ("resident_before_bytes", "resident_bytes")]
        table.add_row(
            one["what"],
            *(_cells(one[name]) for name in ("ready", "scrapes", "patient")),
            f"{one['cpu_seconds']:.1f} s",
            "{:.0f} → {:.0f} MB".format(*memory),
            f"{one['log_bytes'] / 1_000:,.0f} kB",
        )
    return table


def _cells(figure: Figures) -> str:
    statuses = ", ".join(f"{count} x {status}" for status, count in figure["statuses"].items())
    return (
        f"{1e3 * figure['median_seconds']:,.0f}, {1e3 * figure['max_seconds']:,.0f} ms: {statuses}"
    )
