"""What is known of an application, as its table of the settings file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from caughtup.agents.cli.columns import printable
from caughtup.agents.configuration.text import toml_value
from caughtup.models.decisions.inputs.known_configs import ASSUMED, READ, TOLD
from caughtup.models.learning.probing import PROBING
from caughtup.models.parameters import NON_OVERLAP_COST, TAGS, TRAFFIC_COST

_MINUTE_MS = 60_000


def settings_table(group: str, lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of an application: what is known, and commented out what is not.

    ``lines`` are those of ``views.configs.application_lines``.
    """
    text = [f"[applications.{toml_value(group)}]"]
    text += [_line(one) for one in lines if "name" in one]
    text += [row for one in lines if one.get("changelogs") for row in _changelogs(group, one)]
    return "\n".join(text) + "\n"


def _line(one: Mapping[str, Any]) -> str:
    value = one["value"]
    if one["name"] == TAGS:
        value = [tag for tag in str(value or "").split(",") if tag]
    only = one["values"] in (str(one["value"]), "none")
    comment = one["known"] if only else f"{one['known']}: {one['values']}"
    line = f"{toml_value(one['name'])} = {toml_value(value)}"
    return f"{'' if _is_known(one) else '#'}{line}  # {printable(comment)}"


def _is_known(one: Mapping[str, Any]) -> bool:
    """Return whether a config has one value, so far as anybody can know.

    An interval is as it is configured, most likely, where one number of whole minutes fits.
    """
    name, value = one["name"], one["value"]
    if one["provenance"] == ASSUMED:
        return False
    if name in (TRAFFIC_COST, NON_OVERLAP_COST):  # of which only some are tried
        return bool(one["provenance"] == TOLD)
    if name == PROBING and one["provenance"] == READ:
        return isinstance(value, int) and value % _MINUTE_MS == 0
    return one["values"] in (str(value), "none")


def _changelogs(group: str, line: Mapping[str, Any]) -> Iterator[str]:
    """Yield the changelogs of each subtopology, commented out until a decision was matched."""
    mark = "" if line["changelogs_known"] else "#"
    whence = printable(line["changelogs_from"])
    yield f"{mark}[applications.{toml_value(group)}.changelogs]  # {whence}"
    for subtopology, topics in line["changelogs"].items():
        yield f"{mark}{toml_value(subtopology)} = {toml_value(topics)}"
