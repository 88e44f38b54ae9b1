"""Kafka Streams' HighAvailabilityTaskAssignor, decision for decision."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapreplace

from caughtup.models.assignors.balance import balance_over_threads
from caughtup.models.assignors.catch_up import CatchUp
from caughtup.models.assignors.client_state import ClientState
from caughtup.models.assignors.decision import ClientDecision, Decision
from caughtup.models.assignors.explanation import explain
from caughtup.models.assignors.rack_aware import Costs, RackAwareAssignor
from caughtup.models.assignors.scenario import Scenario
from caughtup.models.assignors.standby_assignor import choose_standby_assignor
from caughtup.models.assignors.task_movement import WarmUps, move_actives, move_standbys
from caughtup.models.ids import TaskId

_DEFAULT_COSTS = Costs(traffic=10, non_overlap=1)


def decide_high_availability(scenario: Scenario) -> Decision:
    """Decide as the assignor of Kafka 3.8 to 4.3 does.

    Where tasks should be is found first, regardless of where they were. Then whatever isn't
    caught up there is left with, or given to, a client that lags less, and up to
    max.warmup.replicas destinations restore meanwhile. A probing rebalance is needed as long as
    anything was deferred so.
    Source: KIP-441, HighAvailabilityTaskAssignor.assign.
    """
    configs = scenario.configs
    clients = [ClientState(client) for client in scenario.clients]
    rack_aware = RackAwareAssignor(scenario, clients, _DEFAULT_COSTS)

    _deal_round_robin(clients, scenario.stateful)
    balance_over_threads(clients, "active")
    rack_aware.optimise_stateful()
    if configs.num_standby_replicas:
        standby_assignor = choose_standby_assignor(scenario)
        standby_assignor.assign(clients, scenario.stateful, configs.num_standby_replicas)
        balance_over_threads(clients, "standby", standby_assignor.may_move)
        rack_aware.optimise_standbys(standby_assignor.may_exchange)

    catch_up = CatchUp(clients, configs.acceptable_recovery_lag)
    warm_ups = WarmUps(configs.max_warmup_replicas)
    actives = move_actives(clients, catch_up, warm_ups)
    warming = {(d.destination, d.task) for d in actives if d.warm_up is not None}
    standbys = move_standbys(clients, catch_up, warm_ups, warming)
    warming |= {(d.destination, d.task) for d in standbys if d.warm_up is not None}

    _assign_stateless(clients, scenario.stateless)
    rack_aware.optimise_stateless()
    deferrals = [*actives, *standbys]
    return Decision(
        probing_rebalance_needed=bool(deferrals),
        clients={
            client.process_id: ClientDecision(
                active=tuple(sorted(client.active)),
                standby=tuple(sorted(client.standby)),
                warmup=tuple(sorted(task for task in client.standby if (place, task) in warming)),
            )
            for place, client in enumerate(clients)
        },
        movements=explain(scenario, clients, deferrals),
    )


def _deal_round_robin(clients: Sequence[ClientState], tasks: Sequence[TaskId]) -> None:
    for turn, task in enumerate(tasks):
        clients[turn % len(clients)].active.add(task)


def _assign_stateless(clients: Sequence[ClientState], tasks: Sequence[TaskId]) -> None:
    """Give each task to the client with the least (active load, process id)."""
    queue = sorted((client.active_load(), place) for place, client in enumerate(clients))
    for task in tasks:
        _, place = queue[0]
        clients[place].active.add(task)
        heapreplace(queue, (clients[place].active_load(), place))
