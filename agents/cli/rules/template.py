"""The alert rules with what can be set in them: what is written as ``@name=default@``.

``@name@`` stands for the same once more, and ``@name words@`` for a duration in words; each name is
one of the alert in which it stands. ``@page-base@`` begins an address of the page: without a base
that line is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import NamedTuple

_ALERT = re.compile(r"\s*- alert: (\w+)")
_PLACE = re.compile(r"@(\w+)(?:=([^@\s]+)| (words))?@")
_RUNBOOK = re.compile(r"(\s*)runbook: (\S+)")
_PAGE = "@page-base@"
_DURATION = re.compile(r"(?:[0-9]+[smhdw])+")
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}
#: By the last part of a name, what its values look like, and what is said of those that don't.
_FORMS = {
    "for": (_DURATION, "a duration such as 90s, 10m or 1h30m"),
    "severity": (re.compile(r"[A-Za-z][\w-]*"), "a word"),
    "threshold": (re.compile(r"[0-9]+(?:\.[0-9]+)?"), "a number"),
}


class Threshold(NamedTuple):
    """What can be set of an alert: its name, such as ``CaughtupDown.for``, and its default."""

    name: str
    default: str

    def fault_of(self, value: str) -> str | None:
        """Describe what a value has to be if it isn't that."""
        form, what = _FORMS[self.name.rpartition(".")[2]]
        return None if form.fullmatch(value) else f"{self.name} has to be {what}"


def thresholds() -> list[Threshold]:
    """List all that can be set, in the order of the rules."""
    return [
        Threshold(f"{alert}.{found[1]}", found[2])
        for alert, line in _lines()
        for found in _PLACE.finditer(line)
        if found[2]
    ]


def rules(
    values: Mapping[str, str], runbook_base: str | None = None, page_base: str | None = None
) -> str:
    """Return the rules with these values, by name, in the place of defaults.

    With ``runbook_base``, a URL below which this project's files are, each alert has a
    ``runbook_url`` that can be clicked, too; with ``page_base``, where the page is, a ``page_url``.
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
    """Yield each line of the template, and the alert that it belongs to."""
    alert = ""
    text = files("caughtup.agents.cli.rules").joinpath("caughtup.rules.yml").read_text()
    for line in text.splitlines():
        if begins := _ALERT.match(line):
            alert = begins[1]
        yield alert, line


def _in_words(duration: str) -> str:
    parts = re.findall(r"([0-9]+)([smhdw])", duration)
    return " ".join(f"{n} {_UNITS[unit]}{'s' * (int(n) != 1)}" for n, unit in parts)
