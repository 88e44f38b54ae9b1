"""``caughtup lag``: the lag of groups, read from a cluster or requested from a service."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import click
import msgspec

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.lag.rows import (
    ORDERS,
    Choice,
    Row,
    group_rows,
    partition_rows,
)
from caughtup.agents.cli.lag.sources import Lag, asking, looking
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
from caughtup.agents.columns import (
    CONFIG_COLUMNS,
    COPY_COLUMNS,
    GROUP_COLUMNS,
    PARTITION_COLUMNS,
    WHY,
    Column,
    cells,
)
from caughtup.agents.looks.cluster import ClusterLooks
from caughtup.models.records.lag_lines import CopyLine, PartitionLine
from caughtup.models.shown.lag import Line
from caughtup.models.verdicts import LAG


class States(click.ParamType):
    """States, separated by commas."""

    name = "state"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> frozenset[str]:
        """Return the states."""
        given = [state.strip().lower() for state in str(value).split(",") if state]
        for state in given:
            if state not in LAG.words:
                self.fail(
                    f"{state!r} is not a state; the states are {', '.join(LAG.words)}", param, ctx
                )
        return frozenset(given)


@click.command(
    short_help="Show the lag of groups and tasks.",
    epilog=examples(
        "caughtup lag -b broker:9092",
        "caughtup lag -b broker:9092 orders --format json",
        "caughtup lag --service http://127.0.0.1:8080 --state stopped,stalled",
        "caughtup lag --service https://caughtup:8080 --token-file token --watch 'orders-*'",
    ),
)
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option("--partitions", "-p", is_flag=True, help="A line for each partition, not each group.")
@click.option("--lagging", is_flag=True, help="Only groups and partitions with records to read.")
@click.option(
    "--state",
    "states",
    type=States(),
    default="",
    metavar="STATE,…",
    help=f"Only groups and partitions in one of these states: {', '.join(LAG.words)}.",
)
@click.option(
    "--sort",
    type=click.Choice(ORDERS),
    help="The order: the worst state, the greatest lag or the most seconds first, or by name. "
    "[default: state; for partitions: name]",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N.")
@click.option(
    "--wide", "-w", is_flag=True, help="Whole names, all columns, and the reason of each state."
)
@watch_options(5.0)
@service_options
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
    connection: Connection,
) -> None:
    """Show how far groups are behind: one line for each, the worst first.

    For each GROUP, show every partition; for a Streams application also every copy of every task,
    and its configs. A GROUP can be a pattern such as 'orders-*'. Names are shortened on a terminal
    only, and not with --wide. With --format json, --sort and --top apply to groups.

    Reads the cluster as it is now and exits; with 3 if no group matches. A single look seldom
    shows the state of a group: --watch shows it after a while, and --service asks a service, which
    knows it at once.
    """
    service = service_of(connection)
    look = (
        looking(ClusterLooks(settings_of(connection), groups))
        if service is None
        else asking(service)
    )
    options = _LagOptions(
        groups, partitions, Choice(lagging, states, sort, top), output == "json", wide
    )
    escape_unencodable()
    lag_now = look()
    for name in _unmatched(lag_now, groups):
        click.echo(
            f"caughtup: no group {printable(name)} {lag_now.where}{_suggestion(lag_now, name)}",
            err=True,
        )
    for why in lag_now.unready:
        click.echo(f"caughtup: incomplete {lag_now.where}: {why}", err=True)
    if watch:
        nothing = [] if options.json else ["nothing matches"]
        repeat(
            look,
            lag_now,
            lambda now: list(options.lines(now)) or nothing,
            every,
            json=options.json,
        )
        return
    printed = False
    for line in options.lines(lag_now):
        click.echo(line)
        printed = True
    if not printed:
        if not groups or matching_groups(lag_now.groups(), groups):
            click.echo(_nothing(lag_now, options.choice), err=True)
        sys.exit(NOTHING_MATCHED)


class _LagOptions(NamedTuple):
    """The options that select and format the output."""

    groups: tuple[str, ...]
    partitions: bool
    choice: Choice
    json: bool
    wide: bool

    def lines(self, lag_now: Lag) -> Iterator[str]:
        """Yield the output, empty if nothing matches."""
        known = lag_now.groups()
        groups = matching_groups(known, self.groups)
        partitions = self.partitions or not set(known).isdisjoint(self.groups)
        if self.json:
            yield from self._json(lag_now, groups, partitions)
            return
        output = Output.of_stdout(wide=self.wide)
        if not partitions:
            found = self.choice.of(group_rows(lag_now.group_lines(groups)), "state")
            yield from self._table(GROUP_COLUMNS, found, output)
            return
        lines_of = list(lag_now.lines(groups))
        found = self.choice.of(partition_rows(lines_of), "name")
        yield from self._table(PARTITION_COLUMNS, found, output)
        copies = [cells(COPY_COLUMNS, line) for line in lines_of if isinstance(line, CopyLine)]
        if self.choice.is_all and copies:
            yield ""
            yield from lines(COPY_COLUMNS, copies, output)
        named_groups = [group for group in groups if group in self.groups]
        configs = [cells(CONFIG_COLUMNS, line) for line in lag_now.configs(named_groups)]
        if self.choice.is_all and configs:
            yield ""
            yield from lines(CONFIG_COLUMNS, configs, output)

    def _table(
        self, columns: Sequence[Column], rows: Sequence[Row], output: Output
    ) -> Iterator[str]:
        if not rows:
            return
        if self.wide:
            columns = (*columns, WHY)
        yield from lines(columns, [cells(columns, row.line) for row in rows], output)

    def _json(self, lag_now: Lag, groups: list[str], partitions: bool) -> Iterator[str]:
        """Yield the JSON lines of groups, without the partitions that don't match."""
        shown: set[tuple[str, str, int]] | None = None
        lines_of: Iterable[Line]
        if self.choice.is_all:
            lines_of = lag_now.lines(groups)
        elif partitions:
            every = self.choice._replace(order=None, top=None)
            lines_of = list(lag_now.lines(groups))
            shown = {row.name for row in every.of(partition_rows(lines_of), "name")}
            chosen = {name[0] for name in shown}
            lines_of = (line for line in lines_of if line.group in chosen)
        else:
            rows = self.choice.of(group_rows(lag_now.group_lines(groups)), "state")
            lines_of = lag_now.lines([row.name[0] for row in rows])
        for line in lines_of:
            if (
                shown is None
                or not isinstance(line, PartitionLine)
                or (line.group, line.topic, line.partition) in shown
            ):
                yield msgspec.json.encode(line).decode()


def _unmatched(lag_now: Lag, groups: Sequence[str]) -> list[str]:
    known = lag_now.groups()
    return [name for name in groups if not matching_groups(known, [name])]


def _suggestion(lag_now: Lag, name: str) -> str:
    close = get_close_matches(name, lag_now.groups(), 1, 0.7)
    return f"; did you mean {printable(close[0])}?" if close else ""


def _nothing(lag_now: Lag, choice: Choice) -> str:
    count = len(lag_now.groups())
    return "no groups" if choice.is_all or not count else f"none of {count} groups matches"
