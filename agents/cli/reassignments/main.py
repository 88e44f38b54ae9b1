"""``caughtup reassignments``: partitions in movement, straight from a cluster, no service needed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import click
import msgspec
from aiokafka.errors import KafkaError
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from caughtup.agents.cli.lag.main import NOTHING_MATCHED
from caughtup.agents.cli.options import connection_options, format_option, settings_of
from caughtup.agents.cli.reassignments.snapshot import ReassignmentView
from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.first_contact import connect
from caughtup.agents.kafka.protocol.decoding import words
from caughtup.agents.probes.reassignments import ReassignmentObserver, Round
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import REASSIGNMENTS
from caughtup.agents.topics.read_to_end import read_if_allowed
from caughtup.agents.views.reassignments import in_words, size
from caughtup.models.durations import duration
from caughtup.models.reassignments.tracking.tracked import HISTORY_MS

_OBSERVATIONS = 4
_PAUSE_SECONDS = 2.0
_NOTHING = "no partition is in movement"
_NO_THROTTLE = ", and no throttle is left over"
_CALM = frozenset({"moving", "tail", "completing", "measuring"})


@click.command(short_help="Show partitions in movement: how far, until when, and what is wrong.")
@click.option("--watch", is_flag=True, help="Go on looking until Ctrl-C.")
@connection_options
@format_option
def reassignments(watch: bool, output: str, **connection: Any) -> None:
    """Show every partition in movement: how far it is, how fast, until when, and what holds it up.

    Looks for some seconds and exits; 3 when nothing is in movement and no throttle is left over.
    That something stands still shows after a minute at the earliest: while the service runs, its
    looks count as well, and without it --watch goes on looking.
    """
    settings = settings_of(connection)
    view = ReassignmentView(connect(settings).cluster)
    view.apply_records(read_if_allowed(settings, REASSIGNMENTS, Progress(), now_ms() - HISTORY_MS))
    show = _watching(view, output) if watch else None
    try:
        asyncio.run(_observe(settings, view, show))
    except KeyboardInterrupt:
        return
    except KafkaError as error:
        raise UserError(f"cannot look at reassignments: {words(error)}") from None
    for what in view.missing:
        click.echo(f"caughtup: not known: {what}", err=True)
    if not view.ongoing() and not view.throttles():
        click.echo(_NOTHING if view.missing else _NOTHING + _NO_THROTTLE, err=True)
        sys.exit(NOTHING_MATCHED)
    if output == "json":
        _print_json(view)
    else:
        _print(Console(markup=False, highlight=False), view)


async def _observe(
    settings: Settings, view: ReassignmentView, show: Callable[[], None] | None
) -> None:
    """Observe until there is something to say, or for ever where each round is shown."""
    async with ReassignmentObserver(aiokafka_config(settings)) as observer:
        with Progress().task("looking at reassignments", 0 if show else _OBSERVATIONS) as advance:
            number = 0
            async for found in _rounds(observer, patient=show is not None):
                view.take(found)
                view.assess(settings.reassignment_budget)
                number += 1
                if show is not None:
                    show()
                    continue
                advance(1)
                if number == _OBSERVATIONS or not found.ongoing:
                    return


async def _rounds(observer: ReassignmentObserver, *, patient: bool) -> AsyncIterator[Round]:
    """Observe again and again; who is patient is told of a round that fails, and waits."""
    while True:
        try:
            found = await observer.observe()
            if not found.listed:
                missing = "; ".join(found.cluster.missing)
                raise UserError(f"cannot tell what is in movement; {missing}")
            yield found
        except KafkaError as error:
            if not patient:
                raise
            click.echo(f"caughtup: cannot look at reassignments: {words(error)}", err=True)
        await asyncio.sleep(_PAUSE_SECONDS)


def _watching(view: ReassignmentView, output: str) -> Callable[[], None]:
    """Return what shows a round: JSON lines, or a table that a terminal keeps in its place."""
    if output == "json":
        return lambda: _print_json(view)
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        return lambda: _print(console, view)
    live = Live(console=console, auto_refresh=False)
    live.start()
    click.get_current_context().call_on_close(live.stop)
    return lambda: live.update(Group(*rendered(view, max(1, console.height // 4))), refresh=True)


def _print(console: Console, view: ReassignmentView) -> None:
    """Print all of it; commands that are to be copied stay on one line."""
    for part in rendered(view, sys.maxsize):
        console.print(part, soft_wrap=isinstance(part, Text))


def _print_json(view: ReassignmentView) -> None:
    for reassignment in view.ongoing():
        click.echo(msgspec.json.encode(view.line(reassignment)).decode())
    for throttle in view.throttles():
        click.echo(msgspec.json.encode(throttle).decode())


def rendered(view: ReassignmentView, most: int) -> list[RenderableType]:
    """Draw ``most`` of the reassignments, the worst, and what is wrong with each."""
    ongoing = view.ongoing()
    table = Table(title="partitions in movement", title_justify="left")
    for column in (
        "partition",
        "from → to",
        "phase",
        "in sync",
        "left",
        "rate",
        "ends in",
        "verdict",
    ):
        right = column in ("left", "rate", "ends in")
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    about: list[Text] = []
    for reassignment in ongoing[:most]:
        line = view.line(reassignment)
        assessed = reassignment.assessed
        eta = None if assessed is None else assessed.figures.eta
        table.add_row(
            str(reassignment.partition),
            f"{_brokers(line['original'])} → {_brokers(line['target'])}",
            line["phase"],
            f"{len(set(line['isr']) & set(line['target']))} of {len(line['target'])}",
            _left(line),
            f"{size(line['rate_bytes_per_second'])}/s" if "rate_bytes_per_second" in line else "",
            "" if eta is None else duration(eta.seconds),
            line["verdict"],
        )
        if line["verdict"] not in _CALM or "cause" in line:
            about.append(_about(str(reassignment.partition), line))
    parts: list[RenderableType] = [table] if ongoing else [Text("no partition is in movement")]
    if len(ongoing) > most:
        parts.append(Text(f"{len(ongoing) - most:,} more that fare no worse"))
    for throttle in view.throttles():
        text = f"throttle without a movement on the {throttle['on']} {throttle['name']}: "
        about.append(Text(f"{text}{throttle['what']}\n  {throttle['advice']}"))
    return [*parts, *about]


def _about(partition: str, line: dict[str, Any]) -> Text:
    cause = f" ({line['cause']})" if "cause" in line else ""
    lines = [f"{partition}: {line['verdict']}{cause}", in_words(line.get("evidence", {}))]
    lines.append(line.get("advice", ""))
    return Text("\n  ".join(filter(None, lines)))


def _left(line: dict[str, Any]) -> str:
    if "bytes_remaining" in line:
        return size(line["bytes_remaining"])
    return f"{line['offsets_remaining']:,} offsets" if "offsets_remaining" in line else "unknown"


def _brokers(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
