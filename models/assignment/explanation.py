"""The movements that lead to an assignment, each with its reason in a sentence for operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from caughtup.models.assignment.client_state import RUNNING, UNKNOWN, ClientState, is_caught_up
from caughtup.models.assignment.decision import Deferral, Movement, MovementKind
from caughtup.models.assignment.scenario import Client, Scenario
from caughtup.models.ids import ProcessId, TaskId

_ORDER = {kind: place for place, kind in enumerate(MovementKind)}


def explain(
    scenario: Scenario, clients: Sequence[ClientState], deferrals: Sequence[Deferral]
) -> tuple[Movement, ...]:
    """Return the movements from what each client had to what it has now, or will have later.

    ``clients`` are the final states, in the scenario's order. A task may have several movements,
    such as an active that moves to one client and a warm-up on another.
    """
    movements = [
        *_handovers(scenario, clients),
        *(_deferred(scenario, deferral) for deferral in deferrals),
        *_new_standbys(scenario, clients, deferrals),
    ]
    movements.sort(key=lambda m: (m.task, _ORDER[m.kind], m.destination))
    return tuple(movements)


def _handovers(scenario: Scenario, clients: Sequence[ClientState]) -> Iterator[Movement]:
    """Yield the actives that are on another client than before."""
    owners: dict[TaskId, Client] = {}
    for client in reversed(scenario.clients):
        owners.update(dict.fromkeys(client.previous_active, client))
    stateful = frozenset(scenario.stateful)
    for client, state in zip(scenario.clients, clients, strict=True):
        for task in state.active - client.previous_active:
            owner = owners.get(task)
            source = owner.process_id if owner else None
            if task not in stateful:
                reason = _STATELESS if scenario.racks is None else f"{_STATELESS}{_BY_RACK}"
                yield Movement(task, source, client.process_id, MovementKind.STATELESS, reason)
                continue
            lag = client.lags[task]
            source_lag = owner.lags[task] if owner else None
            kind = MovementKind.COLD
            reason = (
                f"no client is caught up and none lags less than this one, which {lag_clause(lag)}"
            )
            if is_caught_up(lag, scenario.configs.acceptable_recovery_lag):
                kind = MovementKind.ACTIVE
                reason = f"the destination {lag_clause(lag)}, so it can take the task over at once"
            yield Movement(task, source, client.process_id, kind, reason, lag, source_lag)


_STATELESS = "a task without state goes to the client with the fewest actives per thread"
_BY_RACK = ", or to one that got it in an exchange that saves traffic between racks"


def _deferred(scenario: Scenario, deferral: Deferral) -> Movement:
    """Return the movement of a copy that waits until its destination is caught up."""
    source, destination = (
        scenario.clients[place] for place in (deferral.source, deferral.destination)
    )
    task, configs = deferral.task, scenario.configs
    lag, source_lag = destination.lags[task], source.lags[task]
    role = "active" if deferral.active else "standby"
    because = (
        f"the {role} belongs on the destination, which {lag_clause(lag)} "
        f"({configs.acceptable_recovery_lag:,} accepted); "
        f"the source {lag_clause(source_lag)} and serves meanwhile"
    )
    if deferral.swapped:
        kind, reason = MovementKind.SWAP, f"{because}, while the destination has its standby"
    elif deferral.warm_up is not None:
        kind = MovementKind.WARMUP
        reason = f"{because}: warm-up {deferral.warm_up:,} of {configs.max_warmup_replicas:,}"
    else:
        kind = MovementKind.WAITING
        reason = f"{because}; {no_warm_up_left(configs.max_warmup_replicas)}"
    ids: tuple[ProcessId, ProcessId] = (source.process_id, destination.process_id)
    return Movement(task, *ids, kind, reason, lag, source_lag, deferral.rule)


def _new_standbys(
    scenario: Scenario, clients: Sequence[ClientState], deferrals: Sequence[Deferral]
) -> Iterator[Movement]:
    """Yield the standbys, warm-ups excluded, on clients that had no copy of the task."""
    warming = {(d.destination, d.task) for d in deferrals if d.warm_up is not None}
    standing_in = {(d.source, d.task) for d in deferrals if not d.active}
    for place, (client, state) in enumerate(zip(scenario.clients, clients, strict=True)):
        for task in state.standby - client.previous_active - client.previous_standby:
            if (place, task) in warming:
                continue
            reason = new_standby(scenario.configs.num_standby_replicas)
            if (place, task) in standing_in:
                reason = "it stands by until the standby on the planned destination is caught up"
            lag = client.lags[task]
            yield Movement(
                task,
                None,
                client.process_id,
                MovementKind.STANDBY,
                f"{reason}; {_destination_clause(lag)}",
                lag,
            )


def no_warm_up_left(most: int) -> str:
    """Return why a copy can't be warmed up yet; ``most`` is ``max.warmup.replicas``."""
    return f"max.warmup.replicas ({most:,}) is used up"


def new_standby(replicas: int) -> str:
    """Return the reason of a standby on a client that had no copy.

    ``replicas`` is ``num.standby.replicas``.
    """
    return (
        "its standby is new here" if replicas == 1 else f"one of {replicas:,} standbys is new here"
    )


def lag_clause(lag: int) -> str:
    """Return the end of a sentence that begins with "the client": its lag in words."""
    if lag == RUNNING:
        return "runs it already"
    if lag == UNKNOWN:
        return "has an unknown lag"
    return f"lags {lag:,} offsets"


def _destination_clause(lag: int) -> str:
    return f"the destination {lag_clause(lag)}"
