"""The orders of clients and tasks for Kafka's internal sticky assignor in a leader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.assignors.kafka.stickiness.set_orders import order_of_clients
from caughtup.models.ids import ProcessId, TaskId


@dataclass(frozen=True, slots=True)
class LeaderOrders:
    """The orders of a leader's hash tables on which the sticky assignor's decision depends.

    ``arrival`` are the clients in the order in which the leader read their first subscriptions;
    None for a map that is sorted by process id. ``tasks`` are all tasks in the order of the
    leader's HashMap, and ``stateful`` those with state in the order of its HashSet.
    """

    arrival: Sequence[ProcessId] | None
    tasks: Sequence[TaskId]
    stateful: Sequence[TaskId]

    def of_clients(self, scenario: Scenario) -> ClientHashOrder:
        """Return the order of the clients: that of the leader's HashMaps, or by process id."""
        process_ids = [client.process_id for client in scenario.clients]
        replicas = scenario.configs.num_standby_replicas
        if self.arrival is None:
            return ClientHashOrder(process_ids, replicas)
        return order_of_clients(process_ids, self.arrival, replicas)


def orders_of_ids(scenario: Scenario) -> LeaderOrders:
    """Return the orders of clients and tasks by their ids."""
    tasks = sorted((*scenario.stateful, *scenario.stateless))
    return LeaderOrders(None, tasks, scenario.stateful)
