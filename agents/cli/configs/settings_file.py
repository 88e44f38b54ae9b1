"""What is known of an application, as its table of the settings file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from caughtup.agents.cli.columns import printable
from caughtup.agents.configuration.text import toml_value
from caughtup.models.learning.probing import PROBING
from caughtup.models.parameters import NON_OVERLAP_COST, TAGS, TRAFFIC_COST
from caughtup.models.records.config_lines import ChangelogsLine, ConfigLine, Line
from caughtup.models.records.fields import or_none

_MINUTE_MS = 60_000


def settings_table(group: str, lines: Sequence[Line]) -> str:
    """Return the table of an application: what is known, and commented out what is not."""
    text = [f"[applications.{toml_value(group)}]"]
    text += [_line(one) for one in lines if isinstance(one, ConfigLine)]
    for one in lines:
        if isinstance(one, ChangelogsLine) and one.changelogs:
            text += _changelogs(group, one, one.changelogs)
    return "\n".join(text) + "\n"


def _line(one: ConfigLine) -> str:
    value: int | str | list[str] = one.value
    if one.name == TAGS:
        value = [tag for tag in str(value or "").split(",") if tag]
    only = one.values in (str(one.value), "none")
    comment = one.known if only else f"{one.known}: {one.values}"
    line = f"{toml_value(one.name)} = {toml_value(value)}"
    return f"{'' if _is_known(one) else '#'}{line}  # {printable(comment)}"


def _is_known(one: ConfigLine) -> bool:
    """Return whether a config has one value, as far as can be known.

    An interval is as it is configured, most likely, where one number of whole minutes fits.
    """
    if one.provenance == "assumed":
        return False
    if one.name in (TRAFFIC_COST, NON_OVERLAP_COST):  # of which only some are tried
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
