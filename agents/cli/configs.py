"""``caughtup configs``: the configs of Streams applications, as a table or a settings file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

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
)
from caughtup.agents.cli.text_tables import Output, lines, printable
from caughtup.agents.columns import CONFIG_COLUMNS, cells
from caughtup.agents.configuration.text import toml_value
from caughtup.agents.looks.cluster import read_snapshot
from caughtup.agents.progress import Progress
from caughtup.models.learning.probing_interval import PROBING
from caughtup.models.parameters import NON_OVERLAP_COST, TAGS, TRAFFIC_COST
from caughtup.models.records.config_lines import ChangelogsLine, ConfigLine, Line
from caughtup.models.records.fields import or_none
from caughtup.models.shown.applications import application_lines

_MINUTE_MS = 60_000


def settings_table(group: str, lines: Sequence[Line]) -> str:
    """Return an application's table of the settings file; what isn't known is commented out."""
    text = [f"[applications.{toml_value(group)}]"]
    text += [_setting_line(one) for one in lines if isinstance(one, ConfigLine)]
    for one in lines:
        if isinstance(one, ChangelogsLine) and one.changelogs:
            text += _changelogs(group, one, one.changelogs)
    return "\n".join(text) + "\n"


def _setting_line(one: ConfigLine) -> str:
    value: int | str | list[str] = one.value
    if one.name == TAGS:
        value = [tag for tag in str(value or "").split(",") if tag]
    only = one.values in (str(one.value), "none")
    comment = one.known if only else f"{one.known}: {one.values}"
    line = f"{toml_value(one.name)} = {toml_value(value)}"
    return f"{'' if _is_known(one) else '#'}{line}  # {printable(comment)}"


def _is_known(one: ConfigLine) -> bool:
    """Return whether only one value is possible.

    A probing interval of whole minutes most likely is the configured one.
    """
    if one.provenance == "assumed":
        return False
    if one.name in (TRAFFIC_COST, NON_OVERLAP_COST):  # only some values are tried
        return one.provenance == "told"
    if one.name == PROBING and one.provenance == "read":
        return isinstance(one.value, int) and one.value % _MINUTE_MS == 0
    return one.values in (str(one.value), "none")


def _changelogs(
    group: str, line: ChangelogsLine, changelogs: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield the changelogs of each subtopology, commented out until a decision was matched."""
    mark = "" if line.changelogs_known else "#"
    source = printable(or_none(line.changelogs_from) or "")
    yield f"{mark}[applications.{toml_value(group)}.changelogs]  # {source}"
    for subtopology, topics in changelogs.items():
        yield f"{mark}{toml_value(subtopology)} = {toml_value(topics)}"


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
    groups: tuple[str, ...], toml: bool, wide: bool, output: str, connection: Connection
) -> None:
    """Show the configs by which Streams applications are assigned their tasks: the value of each,
    or what it can still be, and how it is known: told (by the settings), read (from what the
    application itself writes), learned (from decisions of its leaders) or assumed (Kafka's
    default).

    A GROUP can be a pattern such as 'orders-*'. A single look at a cluster shows one generation; a
    service learns from every generation and writes what it knows to a topic, which this command
    reads. --service asks the service itself, which needs no permission to read that topic.
    Exits 3 if no GROUP is a Kafka Streams application whose leader assigns its tasks.
    """
    service = service_of(connection)
    known = _read_lines(connection) if service is None else service.configs()
    by_group: dict[str, list[Line]] = {}
    for line in known:
        by_group.setdefault(str(line.group), []).append(line)
    found = matching_groups(by_group, groups)
    for name in groups:
        if not matching_groups(found, [name]):
            why = "is not a Kafka Streams application whose leader assigns its tasks"
            click.echo(f"caughtup: {printable(name)} {why}", err=True)
    if not found:
        sys.exit(NOTHING_MATCHED)
    lines_of = {group: by_group[group] for group in found}
    for text in _printed(lines_of, toml=toml, json=output == "json", wide=wide):
        click.echo(text)


def _read_lines(connection: Connection) -> list[Line]:
    """Return the lines that a service would answer, from a snapshot of the cluster."""
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
    from_one_generation = [
        group
        for group, own in found.items()
        if any(isinstance(one, ChangelogsLine) and one.from_one_generation for one in own)
    ]
    if from_one_generation:
        yield ""
        yield (
            f"{', '.join(map(printable, from_one_generation))}: known from the newest generation alone. "
            "A running service learns from every generation."
        )
