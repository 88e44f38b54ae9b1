"""The two flow networks of KIP-925: least traffic across racks, and with balanced subtopologies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import ceil

from caughtup.models.assignors.kafka.racks.min_cost_flow import FlowNetwork


def reassign_for_min_traffic(
    owners: Sequence[int],
    costs: Sequence[Sequence[int]],
    _subtopologies: Sequence[int],
    network_of: Callable[[int], FlowNetwork] = FlowNetwork,
) -> list[int]:
    """Return the tasks' new owners; each client keeps its number of tasks.

    ``owners`` are the clients of the tasks, in TaskId order, and ``costs`` the cost of each task on
    each client, both as places. Subtopologies don't matter here. ``network_of`` creates the
    release's kind of network with this number of nodes.

    The network: source → tasks → clients → sink, with the present assignment as its flow. Source:
    MinTrafficGraphConstructor.
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


def reassign_for_balanced_subtopologies(
    owners: Sequence[int], costs: Sequence[Sequence[int]], subtopologies: Sequence[int]
) -> list[int]:
    """Return the tasks' new owners; each client keeps its number of tasks.

    ``owners`` are the clients of the tasks, in TaskId order, ``costs`` the cost of each task on
    each client, and ``subtopologies`` each task's. Of every subtopology a client gets at most its
    share of all tasks, rounded up.

    The network: source → tasks → clients, once for each subtopology → clients → sink. Its flow
    starts empty: the present assignment counts only in the costs. Source:
    BalanceSubtopologyGraphConstructor.
    """
    tasks, clients = len(owners), len(costs[0])
    groups = [list(places) for _, places in groupby(range(tasks), subtopologies.__getitem__)]
    counts = [owners.count(client) for client in range(clients)]
    source, first_share = 0, 1 + tasks
    first_client = first_share + clients * len(groups)
    sink = first_client + clients
    network = FlowNetwork(sink + 1)
    edges: list[list[int]] = []
    for group, places in enumerate(groups):
        share = first_share + clients * group
        for client, count in enumerate(counts):
            # In Kafka's order of operations, because the last bit of a quotient can decide.
            capacity = ceil(count / tasks * len(places))
            network.add_edge(share + client, first_client + client, capacity)
        for task in places:
            network.add_edge(source, 1 + task, 1)
            edges.append(
                [
                    network.add_edge(1 + task, share + client, 1, cost)
                    for client, cost in enumerate(costs[task])
                ]
            )
    for client, count in enumerate(counts):
        network.add_edge(first_client + client, sink, count)
    network.fill(source, sink)
    network.minimise_cost()
    return [next(c for c, edge in enumerate(row) if network.flow(edge)) for row in edges]
