"""Kafka Streams' internal sticky assignor and its fallback variant, decision for decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.decision import ClientDecision, Decision
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.java.hash_map import JavaHashMap, copied_table, task_hash_code_of
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.assignors.kafka.client_loads import ClientLoads
from caughtup.models.assignors.kafka.racks.rack_aware import Costs, RackAwareAssignor
from caughtup.models.assignors.kafka.stickiness import (
    StickyHistory,
    TaskPairs,
    explain_sticky,
    order_of_clients,
    require_countable,
)
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


DEFAULT_COSTS = Costs(traffic=1, non_overlap=10)


def decide_sticky(scenario: Scenario, orders: LeaderOrders | None = None) -> Decision:
    """Decide as the internal sticky assignor of the scenario's release does.

    Tasks stay where they were as far as the threads' shares allow. The assignor ignores lags,
    warm-ups and client tags, and never asks for a probing rebalance. ``orders`` are those of a real
    leader's collections; by default clients and tasks are in the order of their ids. Raises
    ScenarioError ``unsupported`` where Kafka's own counts overflow: for more than 46,341 tasks or
    2,147,483,647 stream threads. Source: LegacyStickyTaskAssignor.assign.
    """
    return _decide(scenario, orders, preserve_actives=False, probing_rebalance_needed=False)


def decide_fallback_prior(scenario: Scenario, orders: LeaderOrders | None = None) -> Decision:
    """Decide as Kafka does without end offsets: as the sticky assignor, but stickier.

    A client keeps all tasks that it ran, regardless of its share, racks are ignored, and a probing
    rebalance is always needed. ``orders`` and the errors raised are as in ``decide_sticky``.
    Source: FallbackPriorTaskAssignor.assign.
    """
    return _decide(scenario, orders, preserve_actives=True, probing_rebalance_needed=True)


def _decide(
    scenario: Scenario,
    orders: LeaderOrders | None,
    *,
    preserve_actives: bool,
    probing_rebalance_needed: bool,
) -> Decision:
    require_countable(scenario)
    clients = [ClientState(client) for client in scenario.clients]
    if orders is None:
        orders = orders_of_ids(scenario)
    order = orders.of_clients(scenario)
    history = StickyHistory(scenario.clients, order, scenario.release)

    _assign_actives(scenario, clients, history, preserve_actives, order, orders.tasks)
    first_actives = [frozenset(client.active) for client in clients]
    rack_aware = RackAwareAssignor(scenario, clients, DEFAULT_COSTS)
    if not preserve_actives:
        rack_aware.optimise_stateful()
        rack_aware.optimise_stateless()
    _assign_standbys(
        scenario, clients, history, order, TaskPairs(first_actives, clients), orders.stateful
    )
    if not preserve_actives:
        rack_aware.optimise_standbys(lambda clients, source, destination, task: True)
    return Decision(
        probing_rebalance_needed=probing_rebalance_needed,
        clients={
            client.process_id: ClientDecision(
                active=tuple(sorted(client.active)),
                standby=tuple(sorted(client.standby)),
                warmup=(),
            )
            for client in clients
        },
        explain=lambda: explain_sticky(scenario, clients, history, first_actives),
    )


def _assign_actives(
    scenario: Scenario,
    clients: Sequence[ClientState],
    history: StickyHistory,
    preserve: bool,
    order: ClientHashOrder,
    tasks: Sequence[TaskId],
) -> None:
    """Assign tasks to previous owners, then to previous standbys, and then the rest.

    The first two only until a client is full, that is, has an even share per thread, rounded down.
    With ``preserve`` a client keeps all tasks that it ran.
    """
    per_thread = len(tasks) // sum(client.capacity for client in clients)

    def is_full(client: ClientState) -> bool:
        return len(client.active) >= client.capacity * per_thread

    hash_code = task_hash_code_of(scenario.release)
    unassigned = JavaHashMap[TaskId](hash_code, copied_table(len(tasks)), tasks)
    known = frozenset(tasks)
    kept = JavaHashMap[TaskId](hash_code)
    for task, place in history.owners():
        if task in known and (preserve or not is_full(clients[place])):
            clients[place].active.add(task)
            kept.add(task)
    for task in kept:
        unassigned.remove(task)

    remaining: list[TaskId] = []
    for task in unassigned:
        for place in history.standbys(task):
            if not is_full(clients[place]):
                clients[place].active.add(task)
                break
        else:
            remaining.append(task)

    everyone = order.everyone
    loads = ClientLoads(clients, everyone, _rank)

    def least_loaded(places: Sequence[int]) -> int | None:
        if places is everyone:
            return loads.least()
        return min(places, key=loads.ranks.__getitem__, default=None)

    for task in sorted(remaining):
        place = _choose(task, frozenset(), everyone, history, loads, least_loaded)
        clients[place].active.add(task)
        loads.changed(place)


def _assign_standbys(
    scenario: Scenario,
    clients: Sequence[ClientState],
    history: StickyHistory,
    order: ClientHashOrder,
    pairs: TaskPairs,
    tasks: Sequence[TaskId],
) -> None:
    """Assign each stateful task's standbys, in order, to clients without a copy of it.

    Clients are preferred that have a task which never shared a client with this one. With too few
    clients a task gets fewer standbys.
    """
    loads = ClientLoads(clients, order.everyone, _rank)
    runs_on = {task: place for place, client in enumerate(clients) for task in client.active}
    for task in tasks:
        holders = {runs_on[task]}
        while len(holders) <= scenario.configs.num_standby_replicas:
            candidates = order.of_all_but(holders)
            if not candidates:
                break
            companions = pairs.companions(task, holders)

            def least_loaded(places: Sequence[int], companions: int = companions) -> int | None:
                best = None
                for place in places:
                    rank = loads.ranks[place]
                    # An empty client is taken although it has no task to pair with.
                    if (best is None or rank < loads.ranks[best]) and (
                        not rank[0] or pairs.has_new(place, companions)
                    ):
                        best = place
                if best is None:
                    return min(places, key=loads.ranks.__getitem__, default=None)
                return best

            place = _choose(task, holders, candidates, history, loads, least_loaded)
            clients[place].standby.add(task)
            pairs.add_standby(task, place)
            loads.changed(place)
            holders.add(place)


def _choose(
    task: TaskId,
    holders: AbstractSet[int],
    candidates: Sequence[int],
    history: StickyHistory,
    loads: ClientLoads[tuple[float, int]],
    least_loaded: Callable[[Sequence[int]], int | None],
) -> int:
    """Choose a client for a task: a previous one, unless balance requires another.

    ``candidates`` are all clients except ``holders``; there is at least one. Source:
    LegacyStickyTaskAssignor.findClient.
    """
    if len(candidates) == 1:
        return candidates[0]
    standbys = [place for place in history.copied_standbys(task) if place not in holders]
    standby = least_loaded(standbys)
    owner = history.owner(task)
    previous = owner if owner is not None and owner not in holders else standby
    if previous is not None:
        if not loads.should_give_way(previous):
            return previous
        if standby is not None and not loads.should_give_way(standby):
            return standby
    chosen = least_loaded(candidates)
    assert chosen is not None, "there are candidates"
    return chosen


def _rank(client: ClientState) -> tuple[float, int]:
    """Return what orders clients by the room that is left.

    An empty client comes first, whatever its threads. Of the others, the one with fewer tasks per
    stream thread comes first, and of two with equal loads the one with more threads.

    Source: LegacyStickyTaskAssignor.findLeastLoaded, ClientState.hasMoreAvailableCapacityThan.
    """
    load = client.task_load()
    return (load, -client.capacity if load else 0)
