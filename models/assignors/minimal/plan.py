"""Where every copy belongs in the end, and in which role: balanced, with the fewest new copies for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.racks.rack_aware import Costs, RackAwareAssignor
from caughtup.models.assignors.minimal.copies import ExistingCopies
from caughtup.models.assignors.minimal.placement import CopyPlacement
from caughtup.models.assignors.minimal.racks import exchange, traffic_of
from caughtup.models.assignors.minimal.routes import Bounds, even_out, level
from caughtup.models.assignors.minimal.tags import TagSpread
from caughtup.models.ids import TaskId


class Roles:
    """The actives of tasks whose copies are placed; ``clients`` has the active's first.

    Changes are made in ``clients``. ``counts`` are the actives of each client.
    """

    def __init__(
        self,
        clients: list[list[int]],
        copies: ExistingCopies,
        capacities: Sequence[int],
        spread: TagSpread,
    ) -> None:
        self.capacities = capacities
        self._clients = clients
        self._copies = copies
        self._spread = spread
        self.counts = [0] * len(capacities)
        for own in clients:
            self.counts[own[0]] += 1

    def tasks(self) -> Iterable[int]:
        """Return the tasks, all of which have an active."""
        return range(len(self._clients))

    def arcs(self, task: int) -> list[tuple[int, int]]:
        """Return the exchanges of a task's active with each of its standbys."""
        active, *standbys = self._clients[task]
        return [(active, standby) for standby in standbys]

    def has_unbuilt(self, _source: int) -> bool:
        """Return False: the copies that have to be built are already placed."""
        return False

    def unbuilt(self, _source: int, _destination: int) -> int | None:
        """Return None."""
        return None

    def nearness(self, task: int, client: int) -> tuple[int, int]:
        """Return a sort key: the offsets that the client has left to restore, then the task."""
        return self._copies.distance(task, client), task

    def pick(self, source: int, destination: int) -> int | None:
        """Choose the active with the least to restore on a client that has no copy of it.

        Those come first whose copies stay spread over as many tag values.
        """
        return min(
            (
                task
                for task, own in enumerate(self._clients)
                if own[0] == source and destination not in own
            ),
            key=lambda task: (
                self._gives_way(self._clients[task], destination) is None,
                self.nearness(task, destination),
            ),
            default=None,
        )

    def move(self, task: int, _source: int, destination: int) -> None:
        """Make the destination the active; without a copy, it gets one in the place of another."""
        own = self._clients[task]
        if destination not in own:
            leaving = self._gives_way(own, destination)
            own[own.index(own[0] if leaving is None else leaving)] = destination
        own.remove(destination)
        own.insert(0, destination)

    def _gives_way(self, own: Sequence[int], destination: int) -> int | None:
        """Return the copy without which the others are spread over as many tag values as before."""
        return next((one for one in own if self._spread.may_move(own, one, destination)), None)


#: HighAvailabilityTaskAssignor's own costs, where the configs don't set any.
_DEFAULT_COSTS = Costs(traffic=10, non_overlap=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """The clients of each task's copies, the active's first; tasks and clients are places."""

    clients: list[list[int]]


def find_plan(scenario: Scenario, copies: ExistingCopies) -> Plan:
    """Return where the copies of all stateful tasks belong.

    The numbers of actives per stream thread differ by at most one, and so do the numbers of copies,
    if tags and the number of clients allow it. Copies are placed first, then their roles: while the
    copies are balanced, the actives can be balanced, too, at no cost. The plan of a group that is
    on its way to a plan builds the rest of that plan, and a later rebalance would find no better
    one. Where tags and balance may conflict, nothing moves unless that improves the whole. Raises
    ScenarioError if racks count and the partitions of a task are missing.
    """
    traffic = None if scenario.racks is None else traffic_of(scenario.racks, scenario.stateful)
    spread = spread_of(scenario)
    plan = _find(scenario, copies, spread, traffic)
    if scenario.configs.num_standby_replicas and (spread.matters or traffic is not None):
        worth = worth_in(scenario)
        assigned = (
            copies.assigned(len(plan.clients[0])) if spread.matters and plan.clients else None
        )
        if assigned is not None and worth(assigned) <= worth(plan.clients):
            plan = Plan(assigned)
        while True:
            later = _find(scenario, copies.carried_out(plan.clients), spread, traffic)
            if worth(plan.clients) <= worth(later.clients):
                break
            plan = later
    return plan


def worth_in(scenario: Scenario) -> Callable[[Sequence[Sequence[int]]], tuple[int, ...]]:
    """Return a function that rates the clients of each task's copies: less is better.

    The first client of each task has the active.
    """
    traffic = None if scenario.racks is None else traffic_of(scenario.racks, scenario.stateful)
    return partial(_worth, scenario, spread_of(scenario), traffic)


def spread_of(scenario: Scenario) -> TagSpread:
    """Return how tag values count in the scenario."""
    return TagSpread(
        [client.tags for client in scenario.clients], scenario.configs.rack_aware_assignment_tags
    )


def _find(
    scenario: Scenario, copies: ExistingCopies, spread: TagSpread, traffic: list[list[int]] | None
) -> Plan:
    members, tasks = scenario.clients, len(scenario.stateful)
    capacities = [client.capacity for client in members]
    replicas = min(scenario.configs.num_standby_replicas, len(members) - 1)
    subtopologies = [task.subtopology for task in scenario.stateful]
    placement = CopyPlacement(copies, capacities, subtopologies, replicas, spread, traffic)
    everything = Bounds(capacities, tasks * (1 + replicas), tasks)
    level(placement, everything)
    while placement.spread_further():
        level(placement, everything)
    plan = Plan(placement.clients)
    if traffic is not None:
        _exchange_actives(plan, traffic, copies, spread)
    if replicas:
        roles = Roles(plan.clients, copies, capacities, spread)
        bounds = Bounds(capacities, tasks, tasks)
        even_out(roles, bounds)
        level(roles, bounds)
        if traffic is not None:
            _exchange_by_racks(scenario, plan, traffic, copies, spread)
    return plan


def _exchange_by_racks(
    scenario: Scenario,
    plan: Plan,
    traffic: Sequence[Sequence[int]],
    copies: ExistingCopies,
    spread: TagSpread,
) -> None:
    """Exchange roles and standbys in turn, until no role changes any more.

    Otherwise the next rebalance would change roles. Each change of roles reduces what is read
    across racks, so this ends.
    """
    _exchange_roles(plan, traffic, copies)
    while True:
        _exchange_standbys(scenario, plan, copies, spread)
        actives = [own[0] for own in plan.clients]
        _exchange_roles(plan, traffic, copies)
        if actives == [own[0] for own in plan.clients]:
            return


def _worth(
    scenario: Scenario,
    spread: TagSpread,
    traffic: list[list[int]] | None,
    clients: Sequence[Sequence[int]],
) -> tuple[int, ...]:
    """Rate an assignment where tags and balance may conflict: less is better.

    Actives out of balance count most, then the tags' values, then copies out of balance, then what
    actives read across racks.
    """
    capacities = [client.capacity for client in scenario.clients]
    actives, everything = [0] * len(capacities), [0] * len(capacities)
    for own in clients:
        actives[own[0]] += 1
        for client in own:
            everything[client] += 1
    tasks = len(clients)
    return (
        *Bounds(capacities, tasks, tasks).deviation(actives),
        -sum(map(spread.values, clients)),
        *Bounds(capacities, sum(everything), tasks).deviation(everything),
        sum(traffic[task][own[0]] for task, own in enumerate(clients)) if traffic else 0,
    )


def _exchange_actives(
    plan: Plan, traffic: Sequence[Sequence[int]], copies: ExistingCopies, spread: TagSpread
) -> None:
    """Exchange actives by racks where that needs no additional copy."""
    everybody = range(len(traffic[0])) if traffic else range(0)
    cheap = []
    for own, held in zip(plan.clients, copies.holders, strict=True):
        others = held if own[0] in held else everybody
        cheap.append(
            {one for one in others if one not in own and spread.may_move(own, own[0], one)}
            | {own[0]}
        )
    actives = [own[0] for own in plan.clients]
    for own, active in zip(
        plan.clients, exchange(actives, traffic, cheap, copies.owner), strict=True
    ):
        own[0] = active


def _exchange_roles(plan: Plan, traffic: Sequence[Sequence[int]], copies: ExistingCopies) -> None:
    """Exchange a task's active and standby where less is then read across racks."""
    actives = [own[0] for own in plan.clients]
    for own, active in zip(
        plan.clients, exchange(actives, traffic, plan.clients, copies.owner), strict=True
    ):
        own.remove(active)
        own.insert(0, active)


def _exchange_standbys(
    scenario: Scenario, plan: Plan, copies: ExistingCopies, spread: TagSpread
) -> None:
    """Exchange standbys between clients that have to build them, or have a copy, by racks."""
    clients = [ClientState(client) for client in scenario.clients]
    for (active, *standbys), task in zip(plan.clients, scenario.stateful, strict=True):
        clients[active].active.add(task)
        for standby in standbys:
            clients[standby].standby.add(task)

    def may_move(
        clients: Sequence[ClientState], source: int, destination: int, task: TaskId
    ) -> bool:
        held = copies.holders[copies.number[task]]
        if source in held and destination not in held:
            return False
        having = [place for place, client in enumerate(clients) if client.has(task)]
        return spread.may_move(having, source, destination)

    RackAwareAssignor(scenario, clients, _DEFAULT_COSTS).optimise_standbys(may_move)
    for own, task in zip(plan.clients, scenario.stateful, strict=True):
        own[1:] = [place for place, client in enumerate(clients) if task in client.standby]
