"""Exchange tasks between clients so that less is read across racks, at the same loads (KIP-925)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, groupby
from math import ceil
from typing import NamedTuple

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.configs import Release
from caughtup.models.assignment.racks import PartitionRacks
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.racks.min_cost_flow import EarlierFlowNetwork, FlowNetwork
from caughtup.models.ids import TaskId


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


#: The values of rack.aware.assignment.strategy except "none".
STRATEGIES: Mapping[
    str, Callable[[Sequence[int], Sequence[Sequence[int]], Sequence[int]], list[int]]
] = {
    "min_traffic": reassign_for_min_traffic,
    "balance_subtopology": reassign_for_balanced_subtopologies,
}
#: The most rounds in which clients exchange standbys, as in Kafka.
MOST_ROUNDS = 4

#: Returns whether a standby may move from one client to another, both given as places.
MayMove = Callable[[Sequence[ClientState], int, int, TaskId], bool]


class Costs(NamedTuple):
    """The two costs of an assignment.

    ``traffic`` is for each partition that a task reads and that has no replica in its client's
    rack, ``non_overlap`` for a task that isn't where it was.
    """

    traffic: int
    non_overlap: int

    def of(self, partitions: PartitionRacks, rack: str, *, stays: bool) -> int:
        """Return the cost of a task on a client in this rack, as a Java int."""
        across = sum(rack not in racks for racks in partitions)
        total = across * self.traffic + (0 if stays else self.non_overlap)
        return (total + (1 << 31)) % (1 << 32) - (1 << 31)


STATELESS_COSTS = Costs(1, 0)


class RackAwareAssignor:
    """Optimises what was assigned to ``clients``; leaves it alone in a scenario without racks.

    Releases before 3.6 know of none, and 3.6 of one strategy, with another search.
    ``defaults`` are the task assignor's own costs, where the configs don't set any.
    Source: KIP-925, RackAwareTaskAssignor.
    """

    def __init__(self, scenario: Scenario, clients: Sequence[ClientState], defaults: Costs) -> None:
        configs = scenario.configs
        traffic = configs.rack_aware_assignment_traffic_cost
        non_overlap = configs.rack_aware_assignment_non_overlap_cost
        self._costs = Costs(
            defaults.traffic if traffic is None else traffic,
            defaults.non_overlap if non_overlap is None else non_overlap,
        )
        self._scenario = scenario
        self._clients = clients
        self._racks = scenario.racks if scenario.release >= Release.V3_5_2 else None
        self._network = FlowNetwork if scenario.release >= Release.V3_7 else EarlierFlowNetwork

    def optimise_stateful(self) -> None:
        """Exchange the stateful actives, all of which must be assigned."""
        self._optimise_actives(self._scenario.stateful, self._costs)

    def optimise_stateless(self) -> None:
        """Exchange the stateless actives, whose moves cost nothing in spite of the configs."""
        self._optimise_actives(self._scenario.stateless, STATELESS_COSTS)

    def optimise_standbys(self, may_move: MayMove) -> None:
        """Exchange standbys between any two clients in different racks, until none moves.

        Standbys are restored from changelogs; the strategy doesn't matter here.
        """
        if self._racks is None:
            return
        racks = self._racks.clients
        standbys = sorted(set[TaskId]().union(*(client.standby for client in self._clients)))
        restored_from = {task: self._racks.of_changelogs(task) for task in standbys}
        pairs = [
            (one, other)
            for one, other in combinations(range(len(racks)), 2)
            if racks[one] != racks[other]
        ]
        for _ in range(MOST_ROUNDS):
            moved = [
                self._exchange_standbys(
                    pair, [racks[place] for place in pair], restored_from, may_move
                )
                for pair in pairs
            ]
            if not any(moved):
                break

    def _optimise_actives(self, tasks: Sequence[TaskId], costs: Costs) -> None:
        if self._racks is None or not tasks:
            return
        owner_of = {t: place for place, client in enumerate(self._clients) for t in client.active}
        owners = [owner_of[task] for task in tasks]
        partitions = [self._racks.of_sources(task) for task in tasks]
        table = tabulate(costs, partitions, self._racks.clients, owners)
        subtopologies = [task.subtopology for task in tasks]
        if self._scenario.release >= Release.V3_7:
            strategy = STRATEGIES[self._scenario.configs.rack_aware_assignment_strategy]
            changed = strategy(owners, table, subtopologies)
        else:
            changed = reassign_for_min_traffic(owners, table, subtopologies, self._network)
        for task, source, destination in zip(tasks, owners, changed, strict=True):
            self._clients[source].active.remove(task)
            self._clients[destination].active.add(task)

    def _exchange_standbys(
        self,
        pair: tuple[int, int],
        racks: Sequence[str],
        restored_from: Mapping[TaskId, PartitionRacks],
        may_move: MayMove,
    ) -> bool:
        """Exchange the standbys that either client could have, and return whether any moved."""
        clients = [self._clients[place] for place in pair]
        owner_of: dict[TaskId, int] = {}
        for owner, other in ((0, 1), (1, 0)):
            movable = [
                task
                for task in clients[owner].standby
                if not clients[other].has(task)
                and may_move(self._clients, pair[owner], pair[other], task)
            ]
            if not movable:
                return False
            owner_of |= dict.fromkeys(movable, owner)
        tasks = sorted(owner_of)
        owners = [owner_of[task] for task in tasks]
        table = tabulate(self._costs, [restored_from[task] for task in tasks], racks, owners)
        subtopologies = [task.subtopology for task in tasks]
        changed = reassign_for_min_traffic(owners, table, subtopologies, self._network)
        for task, source, destination in zip(tasks, owners, changed, strict=True):
            clients[source].standby.remove(task)
            clients[destination].standby.add(task)
        return changed != owners


def tabulate(
    costs: Costs, tasks: Sequence[PartitionRacks], racks: Sequence[str], owners: Sequence[int]
) -> list[list[int]]:
    """Return the cost of each task in each rack, as rows of places in ``racks``.

    ``tasks`` are the racks of the partitions that each task reads, ``owners`` the tasks' present
    places.
    """
    return [
        [costs.of(task, rack, stays=place == owner) for place, rack in enumerate(racks)]
        for task, owner in zip(tasks, owners, strict=True)
    ]
