"""``caughtup configs``: the configs of Streams applications, and how each of them is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from caughtup.agents.cli.columns import Output, lines, printable
from caughtup.agents.cli.configs.settings_file import settings_table
from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.lag.main import NOTHING_MATCHED
from caughtup.agents.cli.lag.rows import CONFIG_COLUMNS, config_cells, named
from caughtup.agents.cli.lag.sources import LookedAt
from caughtup.agents.cli.options import connection_options, format_option, settings_of
from caughtup.agents.cli.snapshot import read_snapshot
from caughtup.agents.progress import Progress
from caughtup.agents.views.configs import from_one_generation
from caughtup.models.security.kafka import Client
from caughtup.models.state.cluster import ClusterState


@click.command(
    short_help="Show what is known of applications' configs.",
    epilog=examples(
        "caughtup configs -b broker:9092",
        "caughtup configs -b broker:9092 orders --toml >> caughtup.toml",
    ),
)
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.option("--toml", is_flag=True, help="As a settings file that can be pasted.")
@click.option("--wide", "-w", is_flag=True, help="Whole names and all columns.")
@connection_options
@format_option
def configs(
    groups: tuple[str, ...], toml: bool, wide: bool, output: str, **connection: Any
) -> None:
    """Show the configs by which Streams applications are assigned their tasks: the value of each,
    or what it can still be, and how that is known. Told by the settings, read from the wire,
    learned from so many of its leaders' decisions, or assumed.

    A GROUP may be a pattern such as 'orders-*'. From one look at a cluster little can be learned:
    a service that runs learns from every generation, and what it knows is read from its topic.
    Exits 3 when no GROUP is a Kafka Streams application whose leader assigns its tasks.
    """
    state = read_snapshot(settings_of(connection, (Client.LIBRDKAFKA,)), Progress())
    found = named(sorted(state.applications), groups)
    for name in groups:
        if not named(found, [name]):
            why = "is no Kafka Streams application whose leader assigns its tasks"
            click.echo(f"caughtup: {printable(name)} {why}", err=True)
    if not found:
        sys.exit(NOTHING_MATCHED)
    for line in _printed(state, found, toml=toml, json=output == "json", wide=wide):
        click.echo(line)


def _printed(
    state: ClusterState, groups: list[str], *, toml: bool, json: bool, wide: bool
) -> Iterator[str]:
    if toml:
        for group in groups:
            yield settings_table(state, group)
        return
    if json:
        for group in groups:
            for line in LookedAt(state).configs([group]):
                yield msgspec.json.encode(line).decode()
        return
    yield from lines(
        CONFIG_COLUMNS,
        config_cells(LookedAt(state).configs(groups)),
        Output.of_stdout(wide=wide),
        {},
    )
    young = [group for group in groups if from_one_generation(state, group)]
    if young:
        what = "one generation" if len(young) == 1 else "one generation each"
        yield ""
        yield (
            f"{', '.join(map(printable, young))}: known from {what}, the newest. More is learned "
            "from each that a running service sees."
        )
