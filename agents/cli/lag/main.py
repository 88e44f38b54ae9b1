"""``caughtup lag``: the lag of groups, straight from a cluster, no service needed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from shutil import get_terminal_size
from typing import Any, NamedTuple

import click
import msgspec

from caughtup.agents.cli.columns import Column, Output, lines, printable
from caughtup.agents.cli.lag.rows import (
    COLOURS,
    GROUP_COLUMNS,
    ORDERS,
    PARTITION_COLUMNS,
    TASK_COLUMNS,
    WHY,
    Choice,
    Row,
    group_rows,
    named,
    partition_rows,
    task_cells,
)
from caughtup.agents.cli.options import connection_options, format_option, settings_of
from caughtup.agents.cli.snapshot import ClusterLooks
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.agents.views.lag_lines import lag_lines
from caughtup.models.lag.verdict import SEVERITY
from caughtup.models.security.kafka import Client
from caughtup.models.state.cluster import ClusterState

#: Exit status when no group matched.
NOTHING_MATCHED = 3
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class States(click.ParamType):
    """States, separated by commas."""

    name = "state"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> frozenset[str]:
        """Return the states. Refuses what is none."""
        given = [state.strip().lower() for state in str(value).split(",") if state]
        for state in given:
            if state not in SEVERITY:
                self.fail(f"{state!r} is no state; there are {', '.join(SEVERITY)}", param, ctx)
        return frozenset(given)


@click.command(short_help="Show the lag of groups and tasks.")
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option("--partitions", "-p", is_flag=True, help="A line for each partition, not each group.")
@click.option("--lagging", is_flag=True, help="Only what has records to read.")
@click.option(
    "--state",
    "states",
    type=States(),
    default="",
    metavar="STATE,…",
    help=f"Only what is in one of these states: {', '.join(SEVERITY)}.",
)
@click.option(
    "--sort",
    type=click.Choice(ORDERS),
    help="What comes first: the worst state, the greatest lag, the most seconds, or by name. "
    "[default: state; of partitions: name]",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N.")
@click.option("--wide", "-w", is_flag=True, help="Whole names and all columns, and why it is so.")
@click.option("--watch", is_flag=True, help="Go on looking until Ctrl-C.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.5, max=3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long --watch waits between two looks.",
)
@connection_options
@format_option
def lag(
    groups: tuple[str, ...],
    partitions: bool,
    lagging: bool,
    states: frozenset[str],
    sort: str | None,
    top: int | None,
    wide: bool,
    watch: bool,
    every: float,
    output: str,
    **connection: Any,
) -> None:
    """Show how far groups are behind: a line for each, the worst first.

    Of a GROUP that is named, each partition, and of a Streams application every copy of every
    task. A pattern such as 'orders-*' chooses groups, too. Names are cut on a terminal only, and
    not with --wide. With --format json, --sort and --top are of groups.

    Reads the cluster as it is now and exits; 3 when no group matched. How a group fares can seldom
    be told from one look: --watch knows more after a while.
    """
    looks = ClusterLooks(settings_of(connection, (Client.LIBRDKAFKA,)), groups)
    asked = _Asked(groups, partitions, Choice(lagging, states, sort, top), output == "json", wide)
    if hasattr(sys.stdout, "reconfigure"):  # a terminal may not have every character
        sys.stdout.reconfigure(errors="backslashreplace")
    state = looks.look(Progress())
    for name in _unmatched(state, groups):
        click.echo(
            f"caughtup: no group {printable(name)} on this cluster{_meant(state, name)}", err=True
        )
    if watch:
        _watch(looks, state, asked, every)
        return
    printed = False
    for line in asked.lines(state):
        click.echo(line)
        printed = True
    if not printed:
        if not groups or named(state.group_names(), groups):
            click.echo(_nothing(state, asked.choice), err=True)
        sys.exit(NOTHING_MATCHED)


class _Asked(NamedTuple):
    """What is to be shown of a cluster, and how."""

    groups: tuple[str, ...]
    partitions: bool
    choice: Choice
    json: bool
    wide: bool

    def lines(self, state: ClusterState) -> Iterator[str]:
        """Yield what is to be printed; nothing where there is nothing that is asked for."""
        known = state.group_names()
        groups = named(known, self.groups)
        partitions = self.partitions or not set(known).isdisjoint(self.groups)
        if self.json:
            yield from self._json(state, groups, partitions)
            return
        output = Output.of_stdout(wide=self.wide)
        if not partitions:
            found = self.choice.of(group_rows(state, groups), "state")
            yield from self._table(GROUP_COLUMNS, found, output)
            return
        found = self.choice.of(partition_rows(state, groups), "name")
        yield from self._table(PARTITION_COLUMNS, found, output)
        if self.choice.is_all and (copies := task_cells(state, groups)):
            yield ""
            yield from lines(TASK_COLUMNS, copies, output, COLOURS)

    def _table(
        self, columns: Sequence[Column], rows: Sequence[Row], output: Output
    ) -> Iterator[str]:
        if not rows:
            return
        cells = [row.cells for row in rows]
        if self.wide:
            columns = (*columns, WHY)
            cells = [(*row.cells, row.why) for row in rows]
        yield from lines(columns, cells, output, COLOURS)

    def _json(self, state: ClusterState, groups: list[str], partitions: bool) -> Iterator[str]:
        """Yield the lines of groups; those of partitions only as far as they are asked for."""
        every = self.choice._replace(order=None, top=None)
        if self.choice.is_all:
            chosen, shown = groups, None
        elif partitions:
            shown = {row.name for row in every.of(partition_rows(state, groups), "name")}
            chosen = [group for group in groups if any(name[0] == group for name in shown)]
        else:
            chosen = [row.name[0] for row in self.choice.of(group_rows(state, groups), "state")]
            shown = None
        for group in chosen:
            for line in lag_lines(state, group):
                name = group, line.get("topic"), line.get("partition")
                if shown is None or line["kind"] != "partition" or name in shown:
                    yield msgspec.json.encode(line).decode()


def _watch(looks: ClusterLooks, state: ClusterState, asked: _Asked, seconds: float) -> None:
    """Show the cluster again and again, on a terminal in its place, until Ctrl-C."""
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not asked.json
    try:
        while True:
            shown = list(asked.lines(state)) or (
                [] if asked.json else ["nothing that is asked for"]
            )
            if terminal:
                room = max(1, get_terminal_size().lines - 1)
                click.echo(_CLEAR + "\n".join(shown[:room]))
            else:
                click.echo("\n".join(shown) + ("" if asked.json else "\n"))
            sys.stdout.flush()
            time.sleep(seconds)
            try:
                state = looks.look(Progress())
            except UserError as error:  # it may be over at the next look
                error.show()
    except KeyboardInterrupt:
        return


def _unmatched(state: ClusterState, groups: Sequence[str]) -> list[str]:
    known = state.group_names()
    return [name for name in groups if not named(known, [name])]


def _meant(state: ClusterState, name: str) -> str:
    close = get_close_matches(name, state.group_names(), 1, 0.7)
    return f"; did you mean {printable(close[0])}?" if close else ""


def _nothing(state: ClusterState, choice: Choice) -> str:
    count = len(state.group_names())
    return "no groups" if choice.is_all or not count else f"none of {count} groups is as asked for"
