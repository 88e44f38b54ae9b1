"""``caughtup connect``: Connect groups, straight from a cluster, no service needed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from shutil import get_terminal_size
from typing import Any

import click
import msgspec

from caughtup.agents.cli.columns import Output, printable
from caughtup.agents.cli.connect.look import ConnectLooks
from caughtup.agents.cli.connect.tables import group_lines
from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.lag.main import NOTHING_MATCHED
from caughtup.agents.cli.lag.rows import named
from caughtup.agents.cli.options import (
    connection_options,
    format_option,
    settings_of,
    watch_options,
)
from caughtup.agents.cli.service.options import service_of, service_options
from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.models.shown.connect import connect_lines
from caughtup.models.shown.connect_lines import Line

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


@click.command(
    short_help="Show Connect groups: which worker runs what, and what is unassigned.",
    epilog=examples(
        "caughtup connect -b broker:9092",
        "caughtup connect -b broker:9092 connect-cluster --watch",
        "caughtup connect -b broker:9092 'connect-*' --json",
        "caughtup connect --service http://127.0.0.1:8080 --watch",
    ),
)
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option("--wide", "-w", is_flag=True, help="Whole names and all columns.")
@watch_options(2.0)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@service_options
@connection_options
@format_option
def connect(
    groups: tuple[str, ...],
    wide: bool,
    watch: bool,
    every: float,
    as_json: bool,
    output: str,
    **connection: Any,
) -> None:
    """Show Connect groups: which worker runs which connector and task, which work no worker runs,
    since when, and which worker gets it when; and where a status contradicts the assignment.

    GROUP is a group.id of Connect workers; a pattern such as 'connect-*' chooses several. Reads the
    cluster as it is now and exits; 3 when no Connect group matched. --service asks a service, which
    has seen more generations than the log still has.
    """
    service = service_of(connection)
    look = _lines_of_looks(connection) if service is None else service.connect
    if hasattr(sys.stdout, "reconfigure"):  # a terminal may not have every character
        sys.stdout.reconfigure(errors="backslashreplace")
    json = as_json or output == "json"
    lines = look()
    known = _groups(lines)
    for name in groups:
        if not named(known, [name]):
            click.echo(f"caughtup: no Connect group {printable(name)} on this cluster", err=True)
    if watch:
        _watch(look, lines, groups, every, json=json, wide=wide)
        return
    printed = False
    for line in shown(lines, groups, json=json, wide=wide):
        click.echo(line)
        printed = True
    if not printed:
        if not groups:
            click.echo("caughtup: no Connect groups", err=True)
        sys.exit(NOTHING_MATCHED)


def _lines_of_looks(connection: dict[str, Any]) -> Callable[[], list[Line]]:
    """Return what looks at the cluster and tells of its Connect groups."""
    looks = ConnectLooks(settings_of(connection))

    def look() -> list[Line]:
        state, at_ms = looks.look(), now_ms()
        groups = sorted(state.connect.groups)
        return [line for group in groups for line in connect_lines(state, group, at_ms)]

    return look


def shown(
    lines: Sequence[Line], groups: Sequence[str], *, json: bool, wide: bool = False
) -> Iterator[str]:
    """Yield what is printed of the groups that are asked for, all without names."""
    at_ms, first = now_ms(), True
    for group in named(_groups(lines), groups):
        of_group = [line for line in lines if line.group == group]
        if json:
            for line in of_group:
                yield msgspec.json.encode(line).decode()
            continue
        if not first:
            yield ""
        first = False
        yield from group_lines(group, of_group, Output.of_stdout(wide=wide), at_ms)


def _groups(lines: Sequence[Line]) -> list[str]:
    return sorted({line.group for line in lines if line.group is not None})


def _watch(
    look: Callable[[], list[Line]],
    lines: Sequence[Line],
    groups: Sequence[str],
    seconds: float,
    *,
    json: bool,
    wide: bool,
) -> None:
    """Show the groups again and again, on a terminal in their place, until Ctrl-C."""
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not json
    try:
        while True:
            text = list(shown(lines, groups, json=json, wide=wide))
            if terminal:
                room = max(1, get_terminal_size().lines - 1)
                click.echo(_CLEAR + "\n".join(text[:room]))
            elif text:
                click.echo("\n".join(text) + ("" if json else "\n"))
            sys.stdout.flush()
            time.sleep(seconds)
            try:
                lines = look()
            except UserError as error:  # it may be over at the next look
                error.show()
    except KeyboardInterrupt:
        return
