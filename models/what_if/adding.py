"""The cost of additional instances: the copies and rebalances until a group is balanced again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from caughtup.models.assignment.client_state import RUNNING
from caughtup.models.assignment.compact import CompactScenario
from caughtup.models.assignment.scenario import Client
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.exact.comparison import KAFKAS
from caughtup.models.decisions.rebalancing_cost import plan_cost
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.records.fields import Part
from caughtup.models.records.recommendations import CostRecord
from caughtup.models.what_if.question import LeaderAssignedGroup

#: The greatest process id in the order in which assignors iterate over them.
_LAST = (1 << 127) - 1


class CostOfAdding(Part):
    """The cost until a group is balanced with ``add`` more instances: the answer of the API.

    ``generation`` is the group's; ``instances`` is its present number. ``cost``: as recommended,
    ``kafka_cost``: by Kafka's assignor. Both include the movements that have begun already.
    """

    group: str
    generation: int
    add: int
    instances: int
    cost: CostRecord
    kafka_cost: CostRecord


def cost_of_adding(
    group: LeaderAssignedGroup, add: int, between_steps: Callable[[], None] = lambda: None
) -> CostOfAdding:
    """Return the cost of instances that join without state, each like the group's last one.

    ``between_steps`` is called from time to time, and may raise to end the computation. Raises
    ScenarioError if the group's inputs are no valid scenario.
    """
    scenario = _joined(_as_of_now(group), add).expanded()
    costs = []
    for one in (scenario, replace(scenario, assignor=KAFKAS)):
        between_steps()
        decision = decide(one)
        between_steps()
        costs.append(plan_cost(one, decision))
    return CostOfAdding(group.name, group.epoch, add, len(group.clients), *costs)


def _as_of_now(group: LeaderAssignedGroup) -> CompactScenario:
    """Return the scenario of a rebalance now, with the present copies and their lags."""
    scenario = group.decided.inputs.scenario
    stateful = {task for task, one in scenario.tasks.items() if one.stateful}
    active: dict[str, set[TaskId]] = {}
    standby: dict[str, set[TaskId]] = {}
    lags: dict[str, dict[TaskId, int]] = {}
    for row in group.rows:
        runs = row.role in {"active", "restoring"}
        (active if runs else standby).setdefault(row.process, set()).add(row.task)
        lag = RUNNING if row.role == "active" else row.lag
        if row.task in stateful and lag is not None:
            lags.setdefault(row.process, {})[row.task] = lag
    clients = {
        process: replace(
            client,
            previous_active=frozenset(active.get(str(process), ())),
            previous_standby=frozenset(standby.get(str(process), ())),
            lags=lags.get(str(process), {}),
        )
        for process, client in scenario.clients.items()
    }
    return replace(scenario, clients=clients)


def _joined(scenario: CompactScenario, add: int) -> CompactScenario:
    """Return a scenario with additional instances that have no state."""
    like = scenario.clients[max(scenario.clients)]
    nothing: frozenset[TaskId] = frozenset()
    added = {
        process: Client(process, like.capacity, nothing, nothing, {}, like.tags, like.rack)
        for process in (ProcessId.of(_LAST - number) for number in range(add))
    }
    return replace(scenario, clients={**scenario.clients, **dict(sorted(added.items()))})
