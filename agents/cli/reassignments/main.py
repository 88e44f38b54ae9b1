"""``caughtup reassignments``: partitions in movement, on a cluster or from a service."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from math import ceil

import click
import msgspec
from aiokafka.errors import KafkaError
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.options import (
    NOTHING_MATCHED,
    Connection,
    Span,
    connection_options,
    format_option,
    service_of,
    service_options,
    settings_of,
)
from caughtup.agents.clock import now_ms
from caughtup.agents.columns import REASSIGNMENT_COLUMNS
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.first_contact import connect
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.looks.reassignments import ReassignmentView
from caughtup.agents.probes.reassignments import ReassignmentObserver, ReassignmentRound
from caughtup.agents.process.fault_log import FaultLog
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.read_to_end import read_if_allowed
from caughtup.models.durations import duration
from caughtup.models.reassignments.advice import in_words
from caughtup.models.reassignments.tracker import HISTORY_MS
from caughtup.models.records.reassignment_lines import Line, MissingLine, Reassignment, ThrottleLine
from caughtup.models.records.topics import REASSIGNMENTS
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import UNTROUBLED

_OBSERVATIONS = 4
_PAUSE_SECONDS = 2.0
_NOTHING = "no partition is in movement"
_NO_THROTTLE = ", and no throttle is orphaned"
_MORE = "--for 70s observes for longer; --service URL asks a service, which has observed for longer"
Lines = list[Line]
Show = Callable[[Lines], None]


@click.command(
    short_help="Show partitions in movement: progress, ETA, and what is wrong.",
    epilog=examples(
        "caughtup reassignments -b broker:9092",
        "caughtup reassignments -b broker:9092 --for 70s",
        "caughtup reassignments --service http://127.0.0.1:8080 --watch",
    ),
)
@click.option("--watch", is_flag=True, help="Update the output again and again until Ctrl-C.")
@click.option(
    "--for",
    "seconds",
    type=Span(),
    metavar="TIME",
    help="Observe for this long, such as 10s or 2m. [default: four observations, about six seconds]",
)
@service_options
@connection_options
@format_option
def reassignments(watch: bool, seconds: float | None, output: str, connection: Connection) -> None:
    """Show every partition in movement: its progress, rate, ETA, and what holds it up.

    Observes for some seconds and exits; with 3 if nothing is in movement and no throttle is
    orphaned. It takes at least a minute to see that a copy stands still: --for sets how long to
    observe, --watch observes until Ctrl-C, and --service asks a service, which has observed for
    longer. If a service runs beside this cluster, the command uses what the service last published.

    The phases: U, the reassignment has just begun; A, replicas copy, until every replica that the
    controller waits for is in the ISR; B or completing, the controller switches over; propagating,
    not every broker knows the result yet.
    """
    if seconds is not None and (watch or connection.service):
        raise click.UsageError("--for cannot be combined with --watch or --service")
    service = service_of(connection)
    if service is not None:
        _ask(service.reassignments, watch, output)
        return
    settings = settings_of(connection)
    state = ClusterState(connect(settings).cluster, {})
    FaultLog().attach(state)
    view = ReassignmentView(state)
    view.apply_records(read_if_allowed(settings, REASSIGNMENTS, Progress(), now_ms() - HISTORY_MS))
    show = _watching(output, _MORE) if watch else None
    try:
        asyncio.run(_observe(settings, view, show, seconds or 0.0))
    except KeyboardInterrupt:
        return
    except KafkaError as error:
        raise UserError(f"cannot look at reassignments: {explain_failure(error)}") from None
    _finish(view.lines(), output, _MORE)


def _ask(service: Callable[[], Lines], watch: bool, output: str) -> None:
    """Show a service's answer, once or repeatedly."""
    if not watch:
        _finish(service(), output)
        return
    show = _watching(output)
    try:
        show(service())
        while True:
            time.sleep(_PAUSE_SECONDS)
            try:
                show(service())
            except UserError as error:  # the next attempt may succeed
                error.show()
    except KeyboardInterrupt:
        return


def _finish(lines: Lines, output: str, more: str = "") -> None:
    """Print the lines, and exit with 3 if there are none."""
    missing = [line for line in lines if isinstance(line, MissingLine)]
    for one in missing:
        click.echo(f"caughtup: not known: {one.what}", err=True)
    if len(lines) == len(missing):
        click.echo(_NOTHING if missing else _NOTHING + _NO_THROTTLE, err=True)
        sys.exit(NOTHING_MATCHED)
    if output == "json":
        _print_json(lines)
    else:
        _print(Console(markup=False, highlight=False), lines, more)


async def _observe(
    settings: Settings, view: ReassignmentView, show: Show | None, seconds: float
) -> None:
    """Observe for at least four rounds and ``seconds``, or forever with ``show``.

    Ends at once if nothing is in movement.
    """
    until = time.monotonic() + seconds
    least = max(_OBSERVATIONS, 1 + ceil(seconds / _PAUSE_SECONDS))
    async with ReassignmentObserver(aiokafka_config(settings)) as observer:
        with Progress().task("looking at reassignments", 0 if show else least) as advance:
            number = 0
            async for found in _rounds(observer, patient=show is not None):
                view.take(found)
                view.assess(settings.reassignment_budget)
                number += 1
                if show is not None:
                    show(view.lines())
                    continue
                advance(1)
                enough = number >= _OBSERVATIONS and time.monotonic() >= until
                if enough or not found.ongoing:
                    return


async def _rounds(
    observer: ReassignmentObserver, *, patient: bool
) -> AsyncIterator[ReassignmentRound]:
    """Yield rounds of observations; if ``patient``, a failed round is only reported."""
    while True:
        try:
            found = await observer.observe()
            if not found.listed:
                missing = "; ".join(found.cluster.missing)
                raise UserError(f"cannot list reassignments; {missing}")
            yield found
        except KafkaError as error:
            if not patient:
                raise
            click.echo(
                f"caughtup: cannot look at reassignments: {explain_failure(error)}", err=True
            )
        await asyncio.sleep(_PAUSE_SECONDS)


def _watching(output: str, more: str = "") -> Show:
    """Return a function that shows a round, as JSON lines or as a table updated in place."""
    if output == "json":
        return _print_json
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        return lambda lines: _print(console, lines, more)
    live = Live(console=console, auto_refresh=False)
    live.start()
    click.get_current_context().call_on_close(live.stop)
    return lambda lines: live.update(
        Group(*rendered(lines, max(1, console.height // 4), more)), refresh=True
    )


def _print(console: Console, lines: Lines, more: str) -> None:
    """Print the lines; commands to be copied stay on one line."""
    for part in rendered(lines, sys.maxsize, more):
        console.print(part, soft_wrap=isinstance(part, Text))


def _print_json(lines: Lines) -> None:
    for line in lines:
        if not isinstance(line, MissingLine):
            click.echo(msgspec.json.encode(line).decode())


def rendered(lines: Sequence[Line], most: int, more: str = "") -> list[RenderableType]:
    """Return a table of the ``most`` worst reassignments, and what is wrong with each.

    ``more`` names the options that would determine an unknown verdict.
    """
    ongoing = [line for line in lines if isinstance(line, Reassignment)]
    table = Table(title="partitions in movement", title_justify="left")
    for column in REASSIGNMENT_COLUMNS:
        table.add_column(
            column.heading, justify="right" if column.right else "left", overflow="fold"
        )
    about: list[Text] = []
    for row in ongoing[:most]:
        table.add_row(*(column.cell(row) for column in REASSIGNMENT_COLUMNS))
        if row.verdict not in UNTROUBLED or row.verdict == "unknown" or row.cause is not None:
            about.append(_about(row, more))
    parts: list[RenderableType] = [table] if ongoing else [Text("no partition is in movement")]
    if len(ongoing) > most:
        parts.append(Text(f"{len(ongoing) - most:,} more, none of them worse"))
    for line in lines:
        if isinstance(line, ThrottleLine):
            text = f"orphaned throttle on the {line.on} {line.name}: {line.what}"
            about.append(Text(f"{text}\n  {line.advice}"))
    return [*parts, *about]


def heading(row: Reassignment) -> str:
    """Return a reassignment's verdict with its cause."""
    return row.verdict if row.cause is None else f"{row.verdict} ({row.cause})"


def explained(row: Reassignment) -> list[str]:
    """Return the figures behind a reassignment's verdict, and advice."""
    return [*filter(None, (in_words(row.evidence or {}), row.advice))]


def _about(row: Reassignment, more: str) -> Text:
    said = [f"{row.topic_partition}: {heading(row)}", *explained(row)]
    away = (row.evidence or {}).get("away_seconds")
    if row.verdict == "measuring" and isinstance(away, float | int):
        said[0] += ", and no copy grows"
        seen = f"seen for {duration(away)} only, and a restart takes up to a minute"
        said.append(f"{seen}; {more}" if more else seen)
    return Text("\n  ".join(said))
