"""``caughtup configs``: the configs of Streams applications, and how each of them is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec

from caughtup.agents.cli.columns import Output, lines, printable
from caughtup.agents.cli.configs.settings_file import settings_table
from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.lag.main import NOTHING_MATCHED
from caughtup.agents.cli.lag.rows import named
from caughtup.agents.cli.options import connection_options, format_option, settings_of
from caughtup.agents.cli.service.options import service_of, service_options
from caughtup.agents.cli.snapshot import read_snapshot
from caughtup.agents.columns import CONFIG_COLUMNS, cells
from caughtup.agents.progress import Progress
from caughtup.models.records.config_lines import ChangelogsLine, ConfigLine, Line
from caughtup.models.shown.applications import application_lines


@click.command(
    short_help="Show the configs of applications, and how each is known.",
    epilog=examples(
        "caughtup configs -b broker:9092",
        "caughtup configs -b broker:9092 orders --toml >> caughtup.toml",
        "caughtup configs --service http://127.0.0.1:8080 --toml",
    ),
)
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option("--toml", is_flag=True, help="Print a part of a settings file.")
@click.option("--wide", "-w", is_flag=True, help="Whole names and all columns.")
@service_options
@connection_options
@format_option
def configs(
    groups: tuple[str, ...], toml: bool, wide: bool, output: str, **connection: Any
) -> None:
    """Show the configs by which Streams applications are assigned their tasks: the value of each,
    or what it can still be, and how it is known: told (by the settings), read (from what the
    application itself writes), learned (from decisions of its leaders) or assumed (Kafka's
    default).

    A GROUP can be a pattern such as 'orders-*'. One look at a cluster teaches little; a service
    learns from every generation and writes what it knows to a topic, from which this command reads
    it. --service asks the service itself, which needs no permission to read that topic.
    Exits 3 if no GROUP is a Kafka Streams application whose leader assigns its tasks.
    """
    service = service_of(connection)
    known = _look(connection) if service is None else service.configs()
    by_group: dict[str, list[Line]] = {}
    for line in known:
        by_group.setdefault(str(line.group), []).append(line)
    found = named(by_group, groups)
    for name in groups:
        if not named(found, [name]):
            why = "is no Kafka Streams application whose leader assigns its tasks"
            click.echo(f"caughtup: {printable(name)} {why}", err=True)
    if not found:
        sys.exit(NOTHING_MATCHED)
    lines_of = {group: by_group[group] for group in found}
    for text in _printed(lines_of, toml=toml, json=output == "json", wide=wide):
        click.echo(text)


def _look(connection: dict[str, Any]) -> list[Line]:
    """Look at the cluster, and return what a service would answer."""
    state = read_snapshot(settings_of(connection), Progress())
    groups = sorted(state.applications)
    return [line for group in groups for line in application_lines(state, group)]


def _printed(
    found: Mapping[str, Sequence[Line]], *, toml: bool, json: bool, wide: bool
) -> Iterator[str]:
    if toml:
        for group, own in found.items():
            yield settings_table(group, own)
        return
    configs = [line for own in found.values() for line in own if isinstance(line, ConfigLine)]
    if json:
        for line in configs:
            yield msgspec.json.encode(line).decode()
        return
    yield from lines(
        CONFIG_COLUMNS,
        [cells(CONFIG_COLUMNS, line) for line in configs],
        Output.of_stdout(wide=wide),
    )
    young = [
        group
        for group, own in found.items()
        if any(isinstance(one, ChangelogsLine) and one.from_one_generation for one in own)
    ]
    if young:
        yield ""
        yield (
            f"{', '.join(map(printable, young))}: known from the newest generation alone. "
            "A running service learns from every generation."
        )
