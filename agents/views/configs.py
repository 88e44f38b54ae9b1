"""What is known of an application's configs: for the terminal, the page and the settings file."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.models.learning.provenance import known_configs
from caughtup.models.records.config_lines import ChangelogsLine, ConfigLine, Line
from caughtup.models.records.recommendations import KnownConfigRecord
from caughtup.models.state.cluster import ClusterState


def configs_of(state: ClusterState, group: str) -> tuple[KnownConfigRecord, ...]:
    """Return what is known of each config: as the newest decision has it, or as it is known."""
    application = state.applications.get(group)
    decided = None if application is None else application.decided
    if decided is not None and decided.inputs.configs:
        return decided.inputs.configs
    return known_configs(state.applications.learned_of(group))


def config_lines(state: ClusterState, group: str) -> list[ConfigLine]:
    """Return a line for each config of an application."""
    return [ConfigLine.of(one, group) for one in configs_of(state, group)]


def application_lines(state: ClusterState, group: str) -> Iterator[Line]:
    """Yield a line of an application's changelogs and one for each of its configs."""
    yield _changelogs(state, group)
    yield from config_lines(state, group)


def _changelogs(state: ClusterState, group: str) -> ChangelogsLine:
    line = ChangelogsLine(group, from_one_generation(state, group))
    application = state.applications.get(group)
    decided = None if application is None else application.decided
    if decided is None:
        return line
    found: dict[str, set[str]] = {}
    inputs = decided.inputs
    for task, one in sorted(inputs.scenario.tasks.items()):
        found.setdefault(str(task.subtopology), set()).update(p.topic for p in one.changelogs)
    if any(found.values()):
        line.changelogs = {number: sorted(topics) for number, topics in found.items()}
        line.changelogs_from = inputs.changelogs_from
        is_match = decided.exact.leader.result == "match"
        line.changelogs_known = is_match or inputs.changelogs_from != "inferred"
    return line


def from_one_generation(state: ClusterState, group: str) -> bool:
    """Return whether all that was learned of a group was learned from its newest generation.

    So it is where no service keeps what was learned before, or where its topic can't be read.
    """
    application = state.applications.get(group)
    since = state.applications.learned_of(group).since
    return application is not None and since == application.newest.generation
