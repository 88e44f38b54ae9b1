"""What is known of an application, as its table of the settings file."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.agents.cli.columns import printable
from caughtup.agents.configuration.text import toml_value
from caughtup.agents.views.configs import configs_of
from caughtup.models.decisions.generation import DecidedGeneration
from caughtup.models.decisions.inputs.known_configs import ASSUMED, READ, KnownConfig
from caughtup.models.learning.probing import PROBING
from caughtup.models.parameters import STRATEGY, TAGS
from caughtup.models.state.cluster import ClusterState

_MINUTE_MS = 60_000


def settings_table(state: ClusterState, group: str) -> str:
    """Return the table of an application: what is known, and commented out what is not."""
    lines = [f"[applications.{toml_value(group)}]"]
    lines += [_line(one) for one in configs_of(state, group)]
    decided = state.applications[group].decided
    if decided is not None:
        lines += _changelogs(group, decided)
    return "\n".join(lines) + "\n"


def _line(one: KnownConfig) -> str:
    value: object = one.value
    if one.name == TAGS:
        value = [tag for tag in str(one.value or "").split(",") if tag]
    comment = one.source if one.text in (str(one.value), "none") else f"{one.source}: {one.text}"
    line = f"{toml_value(one.name)} = {toml_value(value)}"
    return f"{'' if _is_known(one) else '#'}{line}  # {printable(comment)}"


def _is_known(one: KnownConfig) -> bool:
    """Return whether a config has one value, so far as anybody can know.

    An interval is as it is configured, most likely, where one number of whole minutes fits.
    """
    if one.provenance == ASSUMED or one.name == STRATEGY:  # which no setting tells
        return False
    if one.name == PROBING and one.provenance == READ:
        return isinstance(one.value, int) and one.value % _MINUTE_MS == 0
    return one.text in (str(one.value), "none")


def _changelogs(group: str, decided: DecidedGeneration) -> Iterator[str]:
    """Yield the changelogs of each subtopology, commented out until a decision was matched."""
    inputs = decided.inputs
    found: dict[int, set[str]] = {}
    for task, one in inputs.scenario.tasks.items():
        found.setdefault(task.subtopology, set()).update(p.topic for p in one.changelogs)
    if not any(found.values()):
        return
    known = decided.exact.result == "match" or inputs.changelogs_from != "inferred"
    mark = "" if known else "#"
    yield f"{mark}[applications.{toml_value(group)}.changelogs]  # {inputs.changelogs_from}"
    for subtopology, topics in sorted(found.items()):
        yield f"{mark}{subtopology} = {toml_value(sorted(topics))}"
