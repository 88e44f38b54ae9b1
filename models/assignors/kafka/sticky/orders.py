"""In which order Kafka's internal sticky assignor meets clients and tasks in a real leader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.assignors.kafka.stickiness.set_orders import order_of_clients
from caughtup.models.ids import ProcessId, TaskId


@dataclass(frozen=True, slots=True)
class LeaderOrders:
    """The orders that a leader's hash tables make up, where the assignor's choices show them.

    ``arrival`` are the clients in the order in which the leader read their first subscriptions;
    None for a map that is sorted by process id.
    ``tasks`` are all tasks in the order of the leader's HashMap, and ``stateful`` those with state
    in that of its HashSet.
    """

    arrival: Sequence[ProcessId] | None
    tasks: Sequence[TaskId]
    stateful: Sequence[TaskId]

    def of_clients(self, scenario: Scenario) -> ClientHashOrder:
        """Order the scenario's clients, as the leader's HashMaps of them do if they arrived."""
        process_ids = [client.process_id for client in scenario.clients]
        replicas = scenario.configs.num_standby_replicas
        if self.arrival is None:
            return ClientHashOrder(process_ids, replicas)
        return order_of_clients(process_ids, self.arrival, replicas)


def orders_of_ids(scenario: Scenario) -> LeaderOrders:
    """Order clients and tasks by their ids."""
    tasks = sorted((*scenario.stateful, *scenario.stateless))
    return LeaderOrders(None, tasks, scenario.stateful)
