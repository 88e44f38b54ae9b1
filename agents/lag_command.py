"""``caughtup lag``: the lag table, straight from a cluster, no service needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.options import connection_options, format_option, settings_of
from caughtup.agents.page_state import present
from caughtup.agents.progress import Progress
from caughtup.agents.snapshot import read_snapshot
from caughtup.models.assessment import Assessed
from caughtup.models.state import ClusterState

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
    state = read_snapshot(settings_of(connection), Progress())
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


def lag_lines(state: ClusterState, group: str) -> Iterator[dict[str, Any]]:
    """Give the JSON lines of one group: its partitions, its members, its tasks' copies."""
    kind = state.group_type(group)
    for row in state.partition_rows(group):
        assessed = state.assessments.find(group, row.partition)
        yield present(
            kind="partition",
            group=group,
            group_type=kind,
            topic=row.partition.topic,
            partition=row.partition.partition,
            committed=row.committed,
            has_commit=row.committed is not None,
            end_offset=row.ends.end_offset if row.ends else None,
            last_stable_offset=row.ends.last_stable_offset if row.ends else None,
            start_offset=row.ends.start_offset if row.ends else None,
            lag=row.lag.lag if row.lag else None,
            lag_committed_view=row.lag.lag_committed_view if row.lag else None,
            lag_seconds=assessed.lag_seconds if assessed and row.ends else None,
            lag_seconds_method=assessed.method if assessed and row.ends else None,
            verdict=assessed.verdict if assessed and row.ends else None,
            why=assessed.reason if assessed and row.ends else None,
            member=row.member.member_id if row.member else None,
            client_id=row.member.client_id if row.member else None,
        )
    yield from _member_lines(state, group)
    yield from task_lines(state, group)


def task_lines(state: ClusterState, group: str) -> Iterator[dict[str, Any]]:
    """Give a JSON line for each copy of each task of a Streams application."""
    for copy in state.task_rows(group):
        yield present(
            kind="task",
            group=group,
            generation=copy.generation,
            process=copy.process,
            client_id=copy.client_id,
            task=str(copy.task),
            role=copy.role,
            lag=copy.lag,
            provenance=copy.provenance,
            offset_sum=copy.offset_sum,
            end_offset_sum=copy.end_offset_sum,
            changelogs=copy.changelogs or None,
            as_of_ms=copy.as_of_ms,
        )


def _member_lines(state: ClusterState, group: str) -> Iterator[dict[str, Any]]:
    membership = state.groups.membership(group)
    if membership is None:
        return
    owned: dict[str, list[tuple[str, int]]] = {}
    for partition, member in sorted(membership.owners.items()):
        owned.setdefault(member.member_id, []).append(tuple(partition))
    application = state.applications.get(group)
    processes = (
        {m.member_id: str(m.process) for m in application.newest.members()} if application else {}
    )
    for member in membership.members:
        yield present(
            kind="member",
            group=group,
            group_type=membership.group_type,
            member=member.member_id,
            client_id=member.client_id,
            host=member.host,
            process=member.process or processes.get(member.member_id),
            assigned=owned.get(member.member_id, []),
        )


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
        lag = str(copy.get("lag", ""))
        tasks.add_row(copy["task"], copy["client_id"], copy["role"], lag, copy["provenance"])
    console.print(tasks)


def _seconds(assessed: Assessed | None) -> str:
    if assessed is None or assessed.lag_seconds is None:
        return "unknown"
    return f"{'≥ ' if assessed.method == 'at_least' else ''}{assessed.lag_seconds:,.0f}"
