"""Exchange tasks between racks by the rules of Kafka's public TaskAssignmentUtils."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.public_sticky.placement import (
    PublicRacks,
    TaskRacks,
    find_public_racks,
)
from caughtup.models.assignors.kafka.racks.rack_aware import (
    MOST_ROUNDS,
    STATELESS_COSTS,
    STRATEGIES,
    Costs,
    tabulate,
)
from caughtup.models.ids import TaskId


class PublicRackAwareness:
    """Optimises what was assigned to ``clients``, if Kafka would.

    Other than inside of Kafka, actives cost what they read from their changelogs, too, and
    standbys are exchanged by the strategy that is configured. Client tags never keep a standby
    from being exchanged: Kafka compares the source's tags with themselves there, in 4.3.1 still.

    ``everyone`` has the places of the clients in the order in which Kafka meets them.
    Source: TaskAssignmentUtils.optimizeRackAwareActiveTasks, optimizeRackAwareStandbyTasks.
    """

    def __init__(
        self, scenario: Scenario, clients: Sequence[ClientState], everyone: Sequence[int]
    ) -> None:
        self._scenario = scenario
        self._clients = clients
        self._everyone = everyone
        self._racks = find_public_racks(scenario)

    def optimise_stateful(self) -> None:
        """Exchange the actives with state, all of which have been assigned."""
        if self._racks is not None:
            self._optimise_actives(self._scenario.stateful, self._racks, self._racks.costs)

    def optimise_stateless(self) -> None:
        """Exchange the actives without state, whose moves cost nothing whatever the configs say."""
        if self._racks is not None:
            self._optimise_actives(self._scenario.stateless, self._racks, STATELESS_COSTS)

    def optimise_standbys(self) -> None:
        """Exchange standbys between each two clients in different racks, as long as any moves."""
        if self._racks is None or self._racks.standbys is None:
            return
        racks = self._racks.clients
        pairs = [
            tuple(sorted(pair))
            for pair in combinations(self._everyone, 2)
            if racks[pair[0]] != racks[pair[1]]
        ]
        for _ in range(MOST_ROUNDS):
            moved = [
                self._exchange_standbys(pair, self._racks, self._racks.standbys) for pair in pairs
            ]
            if not any(moved):
                break

    def _optimise_actives(self, tasks: Sequence[TaskId], racks: PublicRacks, costs: Costs) -> None:
        if racks.actives is None or not tasks:
            return
        owner_of = {
            task: turn
            for turn, place in enumerate(self._everyone)
            for task in self._clients[place].active
        }
        clients = [self._clients[place] for place in self._everyone]
        names = [racks.clients[place] for place in self._everyone]
        owners = [owner_of[task] for task in tasks]
        changed = self._reassign(tasks, owners, names, racks.actives, costs)
        for task, source, destination in zip(tasks, owners, changed, strict=True):
            clients[source].active.remove(task)
            clients[destination].active.add(task)

    def _exchange_standbys(self, pair: Sequence[int], racks: PublicRacks, read: TaskRacks) -> bool:
        """Exchange the standbys that either client could have, and tell whether any was moved."""
        one, other = clients = [self._clients[place] for place in pair]
        owner_of = dict.fromkeys((task for task in one.standby if not other.has(task)), 0)
        others = dict.fromkeys((task for task in other.standby if not one.has(task)), 1)
        if not owner_of or not others:
            return False
        owner_of |= others
        tasks = sorted(owner_of)
        owners = [owner_of[task] for task in tasks]
        names = [racks.clients[place] for place in pair]
        changed = self._reassign(tasks, owners, names, read, racks.costs)
        for task, source, destination in zip(tasks, owners, changed, strict=True):
            clients[source].standby.remove(task)
            clients[destination].standby.add(task)
        return changed != owners

    def _reassign(
        self,
        tasks: Sequence[TaskId],
        owners: Sequence[int],
        racks: Sequence[str],
        read: TaskRacks,
        costs: Costs,
    ) -> list[int]:
        """Return the tasks' new owners; owners are named by their places in ``racks``."""
        table = tabulate(costs, [read[task] for task in tasks], racks, owners)
        strategy = STRATEGIES[self._scenario.configs.rack_aware_assignment_strategy]
        return strategy(owners, table, [task.subtopology for task in tasks])
