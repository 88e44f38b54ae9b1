"""``caughtup rules``: the alert rules for Prometheus, with thresholds and addresses filled in.

The template has ``@name=default@`` for what can be set, ``@name@`` to repeat it, and
``@name words@`` for a duration in words; names are per alert. A line with ``@page-base@`` is left
out without the page's address, one that begins with ``@ `` always.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import NamedTuple

import click

from caughtup.agents.cli.commands import examples
from caughtup.agents.configuration.validating import unknown

_ALERT = re.compile(r"\s*- alert: (\w+)")
_PLACE = re.compile(r"@(\w+)(?:=([^@\s]+)| (words))?@")
_RUNBOOK = re.compile(r"(\s*)runbook: (\S+)")
_PAGE = "@page-base@"
_DURATION = re.compile(r"(?:[0-9]+[smhdw])+")
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}
#: The pattern of values, by the last part of a name, and its description for errors.
_FORMS = {
    "for": (_DURATION, "a duration such as 90s, 10m or 1h30m"),
    "severity": (re.compile(r"[A-Za-z][\w-]*"), "a word"),
    "threshold": (re.compile(r"[0-9]+(?:\.[0-9]+)?"), "a number"),
}


class Threshold(NamedTuple):
    """A value that can be set, such as ``CaughtupDown.for``, and its default."""

    name: str
    default: str

    def fault_of(self, value: str) -> str | None:
        """Return the error of a value, None if it is valid."""
        form, what = _FORMS[self.name.rpartition(".")[2]]
        return None if form.fullmatch(value) else f"{self.name} has to be {what}"


def thresholds() -> list[Threshold]:
    """Return all values that can be set, in the order of the rules."""
    return [
        Threshold(f"{alert}.{found[1]}", found[2])
        for alert, line in _lines()
        for found in _PLACE.finditer(line)
        if found[2]
    ]


def render_rules(
    values: Mapping[str, str], runbook_base: str | None = None, page_base: str | None = None
) -> str:
    """Return the rules with ``values``, by name, instead of defaults.

    ``runbook_base``, the URL of this project's files, adds a ``runbook_url`` to each alert,
    ``page_base``, the URL of the page, a ``page_url``.
    """
    known = {each.name: each.default for each in thresholds()} | dict(values)
    text = []
    for alert, line in _lines():
        if _PAGE in line:
            if page_base is not None:
                text.append(line.replace(_PAGE, page_base.rstrip("/")))
            continue

        def value(found: re.Match[str], alert: str = alert) -> str:
            given = known[f"{alert}.{found[1]}"]
            return _in_words(given) if found[3] else given

        written = _PLACE.sub(value, line)
        text.append(written)
        if runbook_base is not None and (runbook := _RUNBOOK.fullmatch(written)):
            text.append(f'{runbook[1]}runbook_url: "{runbook_base.rstrip("/")}/{runbook[2]}"')
    return "\n".join(text) + "\n"


def _lines() -> Iterator[tuple[str, str]]:
    """Yield each line of the template, after the name of its alert."""
    alert = ""
    text = files("caughtup.agents.cli.rules").joinpath("caughtup.rules.yml").read_text()
    for line in text.splitlines():
        if line.startswith("@ "):
            continue
        if begins := _ALERT.match(line):
            alert = begins[1]
        yield alert, line


def _in_words(duration: str) -> str:
    parts = re.findall(r"([0-9]+)([smhdw])", duration)
    return " ".join(f"{n} {_UNITS[unit]}{'s' * (int(n) != 1)}" for n, unit in parts)


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
@click.option(
    "--list", "listed", is_flag=True, help="List the values that can be set, with their defaults."
)
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
    click.echo(render_rules(values, runbook_base, page_base), nl=False)
