"""``caughtup connect``: Connect groups, read from a cluster or requested from a service."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import click
import msgspec

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.options import (
    NOTHING_MATCHED,
    Connection,
    connection_options,
    format_option,
    matching_groups,
    service_of,
    service_options,
    settings_of,
    watch_options,
)
from caughtup.agents.cli.text_tables import Output, escape_unencodable, lines, printable
from caughtup.agents.cli.text_tables import watch as repeat
from caughtup.agents.clock import now_ms
from caughtup.agents.columns import (
    CONNECTOR_COLUMNS,
    CONTRADICTION_COLUMNS,
    UNASSIGNED_COLUMNS,
    WORKER_COLUMNS,
    Column,
    cells,
)
from caughtup.agents.looks.cluster import ClusterLooks
from caughtup.agents.progress import Progress
from caughtup.agents.units import seconds_since, seconds_until
from caughtup.models.shown.connect import connect_lines
from caughtup.models.shown.connect_lines import (
    ConnectGroupLine,
    ConnectorLine,
    ContradictionLine,
    Line,
    UnassignedLine,
    WorkerLine,
)


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
    connection: Connection,
) -> None:
    """Show Connect groups: which worker runs which connector and task, which work no worker runs,
    since when, and which worker gets it when; and where a status contradicts the assignment.

    GROUP is a group.id of Connect workers; a pattern such as 'connect-*' chooses several. Reads the
    cluster as it is now and exits; 3 when no Connect group matched. --service asks a service, which
    has seen more generations than the log still has.
    """
    service = service_of(connection)
    look = _cluster_reader(connection) if service is None else service.connect
    escape_unencodable()
    json = as_json or output == "json"
    lines = look()
    known = _groups(lines)
    for name in groups:
        if not matching_groups(known, [name]):
            click.echo(f"caughtup: no Connect group {printable(name)} on this cluster", err=True)
    if watch:
        repeat(
            look,
            lines,
            lambda some: output_lines(some, groups, json=json, wide=wide),
            every,
            json=json,
        )
        return
    printed = False
    for line in output_lines(lines, groups, json=json, wide=wide):
        click.echo(line)
        printed = True
    if not printed:
        if not groups:
            click.echo("caughtup: no Connect groups", err=True)
        sys.exit(NOTHING_MATCHED)


def _cluster_reader(connection: Connection) -> Callable[[], list[Line]]:
    """Return a function that reads the lines of the cluster's Connect groups."""
    looks = ClusterLooks(settings_of(connection), connect=True)

    def look() -> list[Line]:
        state, at_ms = looks.look(Progress()), now_ms()
        groups = sorted(state.connect.groups)
        return [line for group in groups for line in connect_lines(state, group, at_ms)]

    return look


def output_lines(
    lines: Sequence[Line], groups: Sequence[str], *, json: bool, wide: bool = False
) -> Iterator[str]:
    """Yield the output for the groups that match, without names for all."""
    at_ms, first = now_ms(), True
    for group in matching_groups(_groups(lines), groups):
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


#: The type of lines of each table, and its columns, in order.
_TABLES: tuple[tuple[type[Line], tuple[Column, ...]], ...] = (
    (ContradictionLine, CONTRADICTION_COLUMNS),
    (UnassignedLine, UNASSIGNED_COLUMNS),
    (WorkerLine, WORKER_COLUMNS),
    (ConnectorLine, CONNECTOR_COLUMNS),
)


def group_lines(group: str, found: Iterable[Line], output: Output, now_ms: int) -> Iterator[str]:
    """Yield the output for a group, from its lines."""
    of_group = list(found)
    for line in of_group:
        if isinstance(line, ConnectGroupLine):
            yield from _about(group, line, now_ms)
    for kind, columns in _TABLES:
        rows = [cells(columns, line, now_ms) for line in of_group if isinstance(line, kind)]
        if rows:
            yield ""
            yield from lines(columns, rows, output)


def _about(group: str, about: ConnectGroupLine, now_ms: int) -> Iterator[str]:
    """Yield the sentences about a group as a whole."""
    why = "" if about.why is None else f": {about.why}"
    yield printable(
        f"{group}, generation {about.generation} ({about.protocol}), "
        f"compared with Kafka's assignor: {about.result}{why}"
    )
    if about.empty_since_ms is not None:
        yield f"the group has had no workers for {seconds_since(about.empty_since_ms, now_ms)}"
    if about.delay_ms:
        due = seconds_until(about.next_rebalance_ms, now_ms)
        why = about.delayed or "its cause is not known"
        yield f"a delay runs ({why}); the next rebalance is due in {due}"
    for worker, revoked in sorted(about.next_revokes.items()):
        yield printable(f"the next rebalance revokes from {worker}: {' '.join(revoked)}")
    if about.storm is not None:
        yield printable(f"the group rebalances again and again: {about.storm.why}")
    for one in about.absences:
        since = seconds_since(one.left_ms, now_ms)
        yield printable(f"{one.worker} left {since} ago: {one.outcome}")
    if about.topics_unknown is not None:
        yield printable(f"the topics of its worker cluster are not known: {about.topics_unknown}")
    for sentence in about.held_back or ():
        yield printable(sentence)
    if about.shared_with is not None:
        others = ", ".join(about.shared_with)
        yield printable(
            f"it shares its topics with {others}: caughtup cannot say which group a status belongs to"
        )
