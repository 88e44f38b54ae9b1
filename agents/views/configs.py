"""What is known of an application's configs: for the terminal, the page and the settings file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from caughtup.models.decisions.inputs.known_configs import KnownConfig
from caughtup.models.decisions.recommendation_fields import config_fields
from caughtup.models.learning.provenance import known_configs
from caughtup.models.state.cluster import ClusterState


def configs_of(state: ClusterState, group: str) -> tuple[KnownConfig, ...]:
    """Return what is known of each config: as the newest decision has it, or as it is known."""
    application = state.applications.get(group)
    decided = None if application is None else application.decided
    if decided is not None and decided.inputs.configs:
        return decided.inputs.configs
    return known_configs(state.applications.learned_of(group))


def config_lines(state: ClusterState, group: str) -> list[dict[str, Any]]:
    """Return the same as JSON's own values; ``known`` says in words how."""
    configs = configs_of(state, group)
    fields = config_fields(configs)
    return [{**line, "known": one.source} for line, one in zip(fields, configs, strict=True)]


def application_lines(state: ClusterState, group: str) -> Iterator[dict[str, Any]]:
    """Yield a line of an application's changelogs, if any were found, and one for each config."""
    yield {
        "group": group,
        "from_one_generation": from_one_generation(state, group),
        **_changelogs(state, group),
    }
    for line in config_lines(state, group):
        yield {"group": group, **line}


def _changelogs(state: ClusterState, group: str) -> dict[str, Any]:
    """Return by subtopology what is restored from where, and how far that is known."""
    application = state.applications.get(group)
    decided = None if application is None else application.decided
    if decided is None:
        return {}
    found: dict[str, set[str]] = {}
    inputs = decided.inputs
    for task, one in sorted(inputs.scenario.tasks.items()):
        found.setdefault(str(task.subtopology), set()).update(p.topic for p in one.changelogs)
    if not any(found.values()):
        return {}
    known = decided.exact.result == "match" or inputs.changelogs_from != "inferred"
    return {
        "changelogs": {number: sorted(topics) for number, topics in found.items()},
        "changelogs_from": inputs.changelogs_from,
        "changelogs_known": known,
    }


def from_one_generation(state: ClusterState, group: str) -> bool:
    """Return whether all that was learned of a group was learned from its newest generation.

    So it is where nobody keeps what was learned before: no service, or none that we may read.
    """
    application = state.applications.get(group)
    since = state.applications.learned_of(group).since
    return application is not None and since == application.newest.generation
