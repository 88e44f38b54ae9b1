"""Exchange tasks between racks by the rules of Kafka's public TaskAssignmentUtils."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.racks import PartitionRacks, TaskReplicas
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.racks.rack_aware import (
    MOST_ROUNDS,
    STATELESS_COSTS,
    STRATEGIES,
    Costs,
    tabulate,
)
from caughtup.models.ids import TaskId, TopicPartition

#: For each task, the racks of the replicas of each partition that it reads.
TaskRacks = Mapping[TaskId, PartitionRacks]
#: A partition that a task reads, whether it is a source, and whether it is a changelog.
_Role = tuple[TopicPartition, bool, bool]


@dataclass(frozen=True, slots=True)
class PublicRacks:
    """The racks of a group in which every client has one, and the configured costs.

    ``clients`` are the clients' racks, in ProcessId order. ``actives`` are the racks of all
    partitions that a task reads, sources and changelogs, and ``standbys`` those of its changelogs;
    each is None if the rack of any such partition is unknown.
    """

    clients: Sequence[str]
    costs: Costs
    actives: TaskRacks | None
    standbys: TaskRacks | None


def find_public_racks(scenario: Scenario) -> PublicRacks | None:
    """Return the racks of clients and replicas; None if Kafka does not assign by rack.

    These rules differ from KIP-925's: both costs must be configured although they have defaults,
    one replica with a rack suffices for a partition, and changelogs count without standbys, too.

    Source: TaskAssignmentUtils.canPerformRackAwareOptimization, hasValidRackInformation.
    """
    configs, task_replicas = scenario.configs, scenario.task_replicas
    traffic = configs.rack_aware_assignment_traffic_cost
    non_overlap = configs.rack_aware_assignment_non_overlap_cost
    clients = [client.rack for client in scenario.clients if client.rack is not None]
    if task_replicas is None or traffic is None or non_overlap is None:
        return None
    if len(clients) < len(scenario.clients):
        return None
    roles = _roles(scenario, task_replicas)
    standbys = {
        task: [role for role in roles[task] if _is_changelog(role)] for task in scenario.stateful
    }
    costs = Costs(traffic, non_overlap)
    if not all(standbys.values()):
        # The scenario doesn't list a changelog of this task, so its replicas are unknown.
        return PublicRacks(clients, costs, None, None)
    known = _known_racks(task_replicas, roles)
    return PublicRacks(clients, costs, _look_up(roles, known), _look_up(standbys, known))


def _is_changelog(role: _Role) -> bool:
    return role[2]


def _roles(scenario: Scenario, task_replicas: TaskReplicas) -> Mapping[TaskId, list[_Role]]:
    roles: dict[TaskId, list[_Role]] = {}
    stateful = frozenset(scenario.stateful)
    for task in (*scenario.stateful, *scenario.stateless):
        sources = frozenset(task_replicas.sources[task])
        changelogs = frozenset(task_replicas.changelogs[task] if task in stateful else ())
        roles[task] = [
            (partition, partition in sources, partition in changelogs)
            for partition in sorted(sources | changelogs)
        ]
    return roles


def _known_racks(
    task_replicas: TaskReplicas, roles: Mapping[TaskId, list[_Role]]
) -> Mapping[_Role, frozenset[str]]:
    """Return the racks of partitions with their roles.

    Kafka keeps the racks for only one of the tasks that have a partition in the same role;
    therefore none are known for a role that several tasks share. Source:
    StreamsPartitionAssignor.buildApplicationState, RackUtils.
    """
    known: dict[_Role, frozenset[str]] = {}
    for role, tasks in Counter(role for own in roles.values() for role in own).items():
        replicas = task_replicas.replicas.get(role[0], ())
        racks = frozenset(rack for rack in replicas if rack is not None)
        if racks and tasks == 1:
            known[role] = racks
    return known


def _look_up(
    tasks: Mapping[TaskId, list[_Role]], known: Mapping[_Role, frozenset[str]]
) -> TaskRacks | None:
    if any(role not in known for own in tasks.values() for role in own):
        return None
    return {task: tuple(known[role] for role in own) for task, own in tasks.items()}


class PublicRackOptimiser:
    """Exchanges assigned tasks of ``clients`` under the conditions of the public assignors.

    Unlike in Kafka's internal assignors, the cost of actives includes what they read from
    changelogs, and standbys are exchanged by the configured strategy. Client tags never prevent an
    exchange of standbys: up to 4.3.1 Kafka compares the source's tags with themselves.

    ``everyone`` are the places of the clients in Kafka's iteration order. Source:
    TaskAssignmentUtils.optimizeRackAwareActiveTasks, optimizeRackAwareStandbyTasks.
    """

    def __init__(
        self, scenario: Scenario, clients: Sequence[ClientState], everyone: Sequence[int]
    ) -> None:
        self._scenario = scenario
        self._clients = clients
        self._everyone = everyone
        self._racks = find_public_racks(scenario)

    def optimise_stateful(self) -> None:
        """Exchange the stateful actives, all of which must be assigned."""
        if self._racks is not None:
            self._optimise_actives(self._scenario.stateful, self._racks, self._racks.costs)

    def optimise_stateless(self) -> None:
        """Exchange the stateless actives, whose moves cost nothing in spite of the configs."""
        if self._racks is not None:
            self._optimise_actives(self._scenario.stateless, self._racks, STATELESS_COSTS)

    def optimise_standbys(self) -> None:
        """Exchange standbys between any two clients in different racks, until none moves."""
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
        """Exchange the standbys that either client could have, and return whether any moved."""
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
