"""Kafka Streams' HighAvailabilityTaskAssignor, decision for decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapreplace
from typing import Literal

from caughtup.models.assignment.client_state import CatchUp, ClientState
from caughtup.models.assignment.decision import ClientDecision, Decision, Deferral
from caughtup.models.assignment.explanation import explain
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.high_availability.task_movement import (
    WarmUps,
    move_actives,
    move_standbys,
)
from caughtup.models.assignors.kafka.racks.rack_aware import Costs, RackAwareAssignor
from caughtup.models.assignors.kafka.standbys import choose_standby_assignor
from caughtup.models.ids import ProcessId, TaskId

DEFAULT_COSTS = Costs(traffic=10, non_overlap=1)


def decide_high_availability(scenario: Scenario) -> Decision:
    """Decide as the assignor of the scenario's release does, 2.8 to 4.3.

    First it places every task regardless of where it was. Then each copy that isn't caught up where
    it was placed stays with, or moves to, a client that lags less, and up to max.warmup.replicas
    destinations restore meanwhile. A probing rebalance is needed as long as any copy is deferred
    like this. Source: KIP-441, HighAvailabilityTaskAssignor.assign.
    """
    configs = scenario.configs
    clients = [ClientState(client) for client in scenario.clients]
    rack_aware = RackAwareAssignor(scenario, clients, DEFAULT_COSTS)

    _assign_round_robin(clients, scenario.stateful)
    balance_over_threads(clients, "active")
    rack_aware.optimise_stateful()
    if configs.num_standby_replicas:
        standby_assignor = choose_standby_assignor(scenario)
        standby_assignor.assign(clients, scenario.stateful, configs.num_standby_replicas)
        balance_over_threads(clients, "standby", standby_assignor.may_move)
        rack_aware.optimise_standbys(standby_assignor.may_exchange)

    release = scenario.release
    lag = configs.acceptable_recovery_lag
    catch_up = CatchUp(clients, scenario.stateful, lag, release=release)
    warm_ups = WarmUps(configs.max_warmup_replicas)
    actives = move_actives(clients, catch_up, warm_ups, release)
    warming = {(d.destination, d.task) for d in actives if d.warm_up is not None}
    standbys = move_standbys(clients, catch_up, warm_ups, warming, release)
    deferrals = [*actives, *standbys]

    _assign_stateless(clients, scenario.stateless)
    rack_aware.optimise_stateless()
    return Decision(
        probing_rebalance_needed=bool(deferrals),
        clients=_tasks_by_client(scenario, clients, deferrals),
        explain=lambda: explain(scenario, clients, deferrals),
    )


def _assign_round_robin(clients: Sequence[ClientState], tasks: Sequence[TaskId]) -> None:
    for place, client in enumerate(clients):
        client.active.update(tasks[place :: len(clients)])


def _assign_stateless(clients: Sequence[ClientState], tasks: Sequence[TaskId]) -> None:
    """Assign each task to the client with the least (active load, process id)."""
    queue = sorted((client.active_load(), place) for place, client in enumerate(clients))
    for task in tasks:
        _, place = queue[0]
        clients[place].active.add(task)
        heapreplace(queue, (clients[place].active_load(), place))


def _tasks_by_client(
    scenario: Scenario, clients: Sequence[ClientState], deferrals: Sequence[Deferral]
) -> dict[ProcessId, ClientDecision]:
    """Return each client's tasks, and which of them are warm-ups."""
    warming: list[list[TaskId]] = [[] for _ in clients]
    for deferral in deferrals:
        if deferral.warm_up is not None:
            warming[deferral.destination].append(deferral.task)
    order = {task: n for n, task in enumerate(sorted((*scenario.stateful, *scenario.stateless)))}

    def in_order(tasks: Iterable[TaskId]) -> tuple[TaskId, ...]:
        return tuple(sorted(tasks, key=order.__getitem__))

    return {
        client.process_id: ClientDecision(
            in_order(client.active), in_order(client.standby), in_order(warm_ups)
        )
        for client, warm_ups in zip(clients, warming, strict=True)
    }


def balance_over_threads(
    clients: Sequence[ClientState],
    role: Literal["active", "standby"],
    may_move: Callable[[int, int], bool] = lambda source, destination: True,
) -> None:
    """Move tasks of one role from loaded to less loaded clients until no move helps.

    Every ordered pair of clients is tried, again and again. Tasks move in TaskId order while the
    source would stay at least as loaded as the destination becomes, and while ``may_move`` allows
    it between the two, which are places in ``clients``. Source:
    HighAvailabilityTaskAssignor.balanceTasksOverThreads.
    """
    raised = [_raised(client) for client in clients]
    least = min(raised)
    moved = True
    while moved:
        moved = False
        for place, source in enumerate(clients):
            lowered = _lowered(source)
            if lowered < least:
                continue
            movable = sorted(source.active if role == "active" else source.standby)
            for other, destination in enumerate(clients):
                if lowered < raised[other] or other == place or not may_move(place, other):
                    continue
                given = _move(movable, source, destination, role)
                if given:
                    moved = True
                    movable = [task for task in movable if task not in given]
                    lowered = _lowered(source)
                    raised[other] = _raised(destination)
            raised[place] = _raised(source)
            least = min(raised)


def _lowered(client: ClientState) -> float:
    """Return a client's load with one task less."""
    return (client.task_count() - 1.0) / client.capacity


def _raised(client: ClientState) -> float:
    """Return a client's load with one task more."""
    return (client.task_count() + 1.0) / client.capacity


def _move(
    movable: Sequence[TaskId],
    source: ClientState,
    destination: ClientState,
    role: Literal["active", "standby"],
) -> set[TaskId]:
    """Move tasks, in this order, between two clients while that helps, and return them."""
    own = source.active if role == "active" else source.standby
    others = destination.active if role == "active" else destination.standby
    given: set[TaskId] = set()
    for task in movable:
        if _lowered(source) < _raised(destination):
            break
        if not destination.has(task):
            own.remove(task)
            others.add(task)
            given.add(task)
    return given
