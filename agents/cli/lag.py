"""``caughtup lag``: the lag table, straight from a cluster, no service needed."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.options import connection_options, format_option, settings_of
from caughtup.agents.cli.snapshot import read_snapshot
from caughtup.agents.progress import Progress
from caughtup.agents.views.lag_lines import lag_lines, task_lines
from caughtup.models.lag.assessment import Assessed
from caughtup.models.records.fields import ABSENT
from caughtup.models.security.kafka import Client
from caughtup.models.state.cluster import ClusterState

#: Exit status when no group matched.
NOTHING_MATCHED = 3


@click.command(short_help="Show the lag of groups and tasks.")
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@connection_options
@format_option
def lag(groups: tuple[str, ...], output: str, **connection: Any) -> None:
    """Show how far groups are behind, and for Streams applications every copy of every task.

    Reads the cluster as it is now and exits; 3 when no group matched.
    """
    state = read_snapshot(settings_of(connection, (Client.LIBRDKAFKA,)), Progress())
    known = state.group_names()
    chosen = [group for group in known if not groups or group in groups]
    if not chosen:
        wanted = ", ".join(groups)
        click.echo(
            f"caughtup: no group {wanted} on this cluster" if groups else "no groups", err=True
        )
        sys.exit(NOTHING_MATCHED)
    if output == "json":
        for group in chosen:
            for line in lag_lines(state, group):
                click.echo(msgspec.json.encode(line).decode())
        return
    console = Console(markup=False)
    for group in chosen:
        _print_group(console, state, group)


def _print_group(console: Console, state: ClusterState, group: str) -> None:
    kind = state.group_type(group)
    table = Table(title=f"{group} ({kind})" if kind else group, title_justify="left")
    for column in ("topic", "partition", "committed", "end", "lag", "seconds", "is", "client"):
        right = column in ("partition", "committed", "end", "lag", "seconds")
        table.add_column(column, justify="right" if right else "left")
    for row in state.partition_rows(group):
        assessed = state.assessments.find(group, row.partition)
        table.add_row(
            row.partition.topic,
            str(row.partition.partition),
            "never" if row.committed is None else str(row.committed),
            str(row.ends.end_offset) if row.ends else "unknown",
            str(row.lag.lag) if row.lag else "unknown",
            _seconds(assessed) if row.ends else "unknown",
            assessed.verdict if assessed and row.ends else "unknown",
            row.member.client_id if row.member else "",
        )
    console.print(table)
    copies = list(task_lines(state, group))
    if not copies:
        return
    tasks = Table(title=f"{group}: copies of tasks", title_justify="left")
    for column in ("task", "client", "role", "lag", "provenance"):
        tasks.add_column(column, justify="right" if column == "lag" else "left")
    for copy in copies:
        lag = "" if copy.lag is ABSENT else str(copy.lag)
        tasks.add_row(copy.task, copy.client_id, copy.role, lag, copy.provenance)
    console.print(tasks)


def _seconds(assessed: Assessed | None) -> str:
    if assessed is None or assessed.lag_seconds is None:
        return "unknown"
    return f"{'≥ ' if assessed.method == 'at_least' else ''}{assessed.lag_seconds:,.0f}"
