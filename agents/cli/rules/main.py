"""``caughtup rules``: the alert rules for Prometheus on standard output."""

from __future__ import annotations

import re

import click

from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.rules.template import rules as written
from caughtup.agents.cli.rules.template import thresholds
from caughtup.agents.configuration.problems import unknown

#: Braces would begin one of Prometheus' templates.
_URL = re.compile(r"https?://[^\s\"\\{}]+")


@click.command(
    short_help="Print the alert rules.",
    epilog=examples(
        "caughtup rules",
        "caughtup rules --set CaughtupGroupDiverging.for=30m | promtool check rules",
        "caughtup rules --page-base https://caughtup.example.com > caughtup.rules.yml",
    ),
)
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="Replaces a default; --list shows the names. May be repeated.",
)
@click.option(
    "--runbook-base",
    metavar="URL",
    help="The address of this project's files in a browser: each alert gets a runbook_url below it.",
)
@click.option(
    "--page-base",
    metavar="URL",
    help="The address of caughtup's page: each alert gets a page_url, that of its group if it has one.",
)
@click.option("--list", "listed", is_flag=True, help="List what can be set, with its defaults.")
def rules(
    given: tuple[str, ...], runbook_base: str | None, page_base: str | None, listed: bool
) -> None:
    """Print the alert rules for a file in Prometheus' rule_files."""
    known = {threshold.name: threshold for threshold in thresholds()}
    if listed:
        for threshold in known.values():
            click.echo(f"{threshold.name}={threshold.default}")
        return
    values = {}
    for entry in given:
        name, equals, value = entry.partition("=")
        if not equals:
            raise click.BadParameter("NAME=VALUE is expected", param_hint="--set")
        if name not in known:
            otherwise = "`caughtup rules --list` lists them all"
            raise click.BadParameter(unknown(name, known, otherwise), param_hint="--set")
        if (fault := known[name].fault_of(value)) is not None:
            raise click.BadParameter(fault, param_hint="--set")
        values[name] = value
    for option, base in (("--runbook-base", runbook_base), ("--page-base", page_base)):
        if base is not None and not _URL.fullmatch(base):
            raise click.BadParameter("a URL is expected", param_hint=option)
    click.echo(written(values, runbook_base, page_base), nl=False)
