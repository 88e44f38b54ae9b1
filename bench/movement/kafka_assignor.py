"""Kafka's decisions: by the published jar, or by our HighAvailabilityTaskAssignor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from caughtup.bench.movement.changes import Change, Variety
from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import ProcessId, TaskId

if TYPE_CHECKING:
    from caughtup.demo.apps.published_assignor import PublishedAssignor

#: With racks and more tasks, Kafka's search takes seconds for each of hundreds of decisions.
_MOST_TASKS_WITH_RACKS = 100


def kafka_assignor(
    published: PublishedAssignor, change: Change, variety: Variety
) -> tuple[str, Callable[[Scenario], Decision]] | None:
    """Return a name and a function that decides like Kafka; None if that takes too long."""
    if variety.racks and change.tasks > _MOST_TASKS_WITH_RACKS:
        return None
    if variety.racks or variety.tags:
        return "our reproduction", decide
    return "the published jar", lambda scenario: _by_the_jar(published, scenario)


def _by_the_jar(published: PublishedAssignor, scenario: Scenario) -> Decision:
    """Return the published jar's decision, which does not show which standbys are warm-ups."""
    configs = scenario.configs
    published.load(
        {
            "assignor": "high_availability",
            "config": {
                "acceptable.recovery.lag": configs.acceptable_recovery_lag,
                "max.warmup.replicas": configs.max_warmup_replicas,
                "num.standby.replicas": configs.num_standby_replicas,
                "probing.rebalance.interval.ms": configs.probing_rebalance_interval_ms,
            },
            "tasks": {str(task): {"stateful": True} for task in scenario.stateful},
            "clients": {
                str(client.process_id): {
                    "capacity": client.capacity,
                    "previous_active": [str(task) for task in client.previous_active],
                    "previous_standby": [str(task) for task in client.previous_standby],
                    "lags": {str(task): lag for task, lag in client.lags.items()},
                }
                for client in scenario.clients
            },
        }
    )
    decided = published.decide().decision
    return Decision(
        decided["probing_rebalance_needed"],
        {
            ProcessId.parse(process): ClientDecision(
                tuple(map(TaskId.parse, given["active"])),
                tuple(map(TaskId.parse, given["standby"])),
                (),
            )
            for process, given in decided["clients"].items()
        },
        tuple,
    )
