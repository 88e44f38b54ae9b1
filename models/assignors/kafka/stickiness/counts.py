"""How much Kafka's sticky assignors can count: tasks in pairs, and threads, as Java's ints."""

from __future__ import annotations

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.errors import ScenarioError

_INT_MAX = (1 << 31) - 1


def require_countable(scenario: Scenario) -> None:
    """Raise ScenarioError ``unsupported`` for a scenario in which Kafka's own counts overflow."""
    tasks = len(scenario.stateful) + len(scenario.stateless)
    if tasks * (tasks - 1) > _INT_MAX:
        raise ScenarioError(
            "unsupported", f"tasks: {tasks:,} are more than the 46,341 that this assignor can count"
        )
    threads = sum(client.capacity for client in scenario.clients)
    if threads > _INT_MAX:
        raise ScenarioError(
            "unsupported", f"clients: {threads:,} stream threads are more than {_INT_MAX:,}"
        )
