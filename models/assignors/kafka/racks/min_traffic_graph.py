"""Exchange tasks between clients so that as little as possible is read across racks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from caughtup.models.assignors.kafka.racks.min_cost_flow import FlowNetwork


def reassign_for_min_traffic(
    owners: Sequence[int],
    costs: Sequence[Sequence[int]],
    _subtopologies: Sequence[int],
    network_of: Callable[[int], FlowNetwork] = FlowNetwork,
) -> list[int]:
    """Return the tasks' new owners; each client keeps the number of tasks that it had.

    ``owners`` has the client of each task, in TaskId order, and ``costs`` what each task costs
    on each client, both by their places. Which subtopology a task is of doesn't matter here.
    ``network_of`` makes a network of so many nodes, as the release has it.

    The network: source → tasks → clients → sink, filled with the assignment as it is.
    Source: MinTrafficGraphConstructor.
    """
    tasks, clients = len(owners), len(costs[0])
    source, first_client, sink = 0, 1 + tasks, 1 + tasks + clients
    network = network_of(sink + 1)
    edges = []
    for task, owner in enumerate(owners):
        network.add_edge(source, 1 + task, 1, flow=1)
        edges.append(
            [
                network.add_edge(1 + task, first_client + client, 1, cost, int(client == owner))
                for client, cost in enumerate(costs[task])
            ]
        )
    for client in range(clients):
        count = owners.count(client)
        network.add_edge(first_client + client, sink, count, flow=count)
    network.minimise_cost()
    return [next(c for c, edge in enumerate(row) if network.flow(edge)) for row in edges]
