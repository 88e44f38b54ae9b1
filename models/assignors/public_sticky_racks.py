"""Exchange tasks between racks by the rules of Kafka's public TaskAssignmentUtils."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from caughtup.models.assignors.client_state import ClientState
from caughtup.models.assignors.placement import Placement
from caughtup.models.assignors.rack_aware import (
    MOST_ROUNDS,
    STATELESS_COSTS,
    STRATEGIES,
    Costs,
    tabulate,
)
from caughtup.models.assignors.racks import PartitionRacks
from caughtup.models.assignors.scenario import Scenario
from caughtup.models.ids import TaskId, TopicPartition


class PublicRackAwareness:
    """Optimises what was assigned to ``clients``, if Kafka would.

    These rules are not those of KIP-925. Nothing is optimised unless both costs are configured,
    although they have defaults. A partition counts as placed as soon as one replica has a rack.
    Actives cost what they read from their changelogs, too. Standbys are exchanged by the strategy
    that is configured. Client tags never keep a standby from being exchanged: Kafka compares the
    source's tags with themselves there, up to 4.3.1 at least.

    ``everyone`` has the places of the clients in the order in which Kafka meets them.
    Source: TaskAssignmentUtils.optimizeRackAwareActiveTasks, optimizeRackAwareStandbyTasks.
    """

    def __init__(
        self, scenario: Scenario, clients: Sequence[ClientState], everyone: Sequence[int]
    ) -> None:
        self._scenario = scenario
        self._clients = clients
        self._everyone = everyone
        self._costs: Costs | None = None
        self._racks = [client.rack for client in scenario.clients if client.rack is not None]
        self._active: Mapping[TaskId, PartitionRacks] | None = None
        self._standby: Mapping[TaskId, PartitionRacks] | None = None
        configs = scenario.configs
        traffic = configs.rack_aware_assignment_traffic_cost
        non_overlap = configs.rack_aware_assignment_non_overlap_cost
        placement = scenario.placement
        if placement is None or traffic is None or non_overlap is None:
            return
        if len(self._racks) < len(clients):
            return
        self._costs = Costs(traffic, non_overlap)
        self._reassign = STRATEGIES[configs.rack_aware_assignment_strategy]
        self._active, self._standby = _find_racks(scenario, placement)

    def optimise_stateful(self) -> None:
        """Exchange the actives with state, all of which have been assigned."""
        if self._costs is not None:
            self._optimise_actives(self._scenario.stateful, self._costs)

    def optimise_stateless(self) -> None:
        """Exchange the actives without state, whose moves cost nothing whatever the configs say."""
        if self._costs is not None:
            self._optimise_actives(self._scenario.stateless, STATELESS_COSTS)

    def optimise_standbys(self) -> None:
        """Let each two clients in different racks exchange standbys, for as long as any moves."""
        if self._costs is None or self._standby is None:
            return
        pairs = [
            tuple(sorted(pair))
            for pair in combinations(self._everyone, 2)
            if self._racks[pair[0]] != self._racks[pair[1]]
        ]
        for _ in range(MOST_ROUNDS):
            moved = [self._exchange_standbys(pair, self._costs, self._standby) for pair in pairs]
            if not any(moved):
                break

    def _optimise_actives(self, tasks: Sequence[TaskId], costs: Costs) -> None:
        if self._active is None or not tasks:
            return
        owner_of = {
            task: turn
            for turn, place in enumerate(self._everyone)
            for task in self._clients[place].active
        }
        owners = [owner_of[task] for task in tasks]
        racks = [self._racks[place] for place in self._everyone]
        table = tabulate(costs, [self._active[task] for task in tasks], racks, owners)
        changed = self._reassign(owners, table, [task.subtopology for task in tasks])
        for task, source, destination in zip(tasks, owners, changed, strict=True):
            self._clients[self._everyone[source]].active.remove(task)
            self._clients[self._everyone[destination]].active.add(task)

    def _exchange_standbys(
        self, pair: Sequence[int], costs: Costs, standby: Mapping[TaskId, PartitionRacks]
    ) -> bool:
        """Exchange the standbys that either client could have, and tell whether any was moved."""
        one, other = (self._clients[place] for place in pair)
        owner_of = dict.fromkeys((task for task in one.standby if not other.has(task)), 0)
        given_back = dict.fromkeys((task for task in other.standby if not one.has(task)), 1)
        if not owner_of or not given_back:
            return False
        owner_of |= given_back
        tasks = sorted(owner_of)
        owners = [owner_of[task] for task in tasks]
        racks = [self._racks[place] for place in pair]
        table = tabulate(costs, [standby[task] for task in tasks], racks, owners)
        changed = self._reassign(owners, table, [task.subtopology for task in tasks])
        for task, source, destination in zip(tasks, owners, changed, strict=True):
            (one, other)[source].standby.remove(task)
            (one, other)[destination].standby.add(task)
        return changed != owners


def _find_racks(
    scenario: Scenario, placement: Placement
) -> tuple[Mapping[TaskId, PartitionRacks] | None, Mapping[TaskId, PartitionRacks] | None]:
    """Find the racks of all that actives read, and of what standbys do; None if one is missing.

    Source: RackUtils.annotateTopicPartitionsWithRackInfo, TaskAssignmentUtils.
    """
    changelogs = {task: placement.changelogs[task] for task in scenario.stateful}
    roles = dict(_roles(scenario, placement))
    known = {
        partition: racks
        for partition, replicas in placement.replicas.items()
        if (racks := frozenset(rack for rack in replicas if rack is not None))
    }
    shared = {
        role
        for role, tasks in Counter(role for own in roles.values() for role in own).items()
        if tasks > 1
    }

    def racks_of(
        tasks: Mapping[TaskId, Sequence[_Role]],
    ) -> Mapping[TaskId, PartitionRacks] | None:
        """Look all of it up. Kafka forgets the racks where two tasks read a partition alike."""
        for own in tasks.values():
            if any(role in shared or role[0] not in known for role in own):
                return None
        return {
            task: tuple(known[partition] for partition, *_ in own) for task, own in tasks.items()
        }

    standby = {task: [role for role in roles[task] if role[2]] for task in changelogs}
    if not all(standby.values()):
        # A changelog that the scenario doesn't name is on brokers that it doesn't name either.
        return None, None
    return racks_of(roles), racks_of(standby)


#: A partition that a task reads, whether as a source, and whether as a changelog.
_Role = tuple[TopicPartition, bool, bool]


def _roles(scenario: Scenario, placement: Placement) -> Iterator[tuple[TaskId, list[_Role]]]:
    stateful = frozenset(scenario.stateful)
    for task in (*scenario.stateful, *scenario.stateless):
        sources = frozenset(placement.sources[task])
        changelogs = frozenset(placement.changelogs[task] if task in stateful else ())
        yield (
            task,
            [
                (partition, partition in sources, partition in changelogs)
                for partition in sorted(sources | changelogs)
            ],
        )
