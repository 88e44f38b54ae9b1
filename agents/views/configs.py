"""What is known of an application's configs: for the terminal, the page and the settings file."""

from __future__ import annotations

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


def from_one_generation(state: ClusterState, group: str) -> bool:
    """Return whether all that was learned of a group was learned from its newest generation.

    So it is where nobody keeps what was learned before: no service, or none that we may read.
    """
    application = state.applications.get(group)
    since = state.applications.learned_of(group).since
    return application is not None and since == application.newest.generation
