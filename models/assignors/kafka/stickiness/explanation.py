"""The movements that a sticky assignor decides, with their reasons as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from caughtup.models.assignment.catch_up import is_caught_up
from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.decision import Movement, MovementKind
from caughtup.models.assignment.explanation import lag_clause
from caughtup.models.assignment.scenario import Client, Scenario
from caughtup.models.assignors.kafka.stickiness.previous_tasks import StickyHistory
from caughtup.models.ids import TaskId


def explain_sticky(
    scenario: Scenario,
    clients: Sequence[ClientState],
    history: StickyHistory,
    first_actives: Sequence[AbstractSet[TaskId]],
) -> tuple[Movement, ...]:
    """Return the copies that clients get and didn't have before, in TaskId order.

    ``clients`` are the final states, in the scenario's order, and ``first_actives`` the actives of
    each client before tasks were exchanged between racks. The assignor ignores lags: a movement is
    ``cold`` if the client that gets the active isn't caught up.
    """
    stateful = frozenset(scenario.stateful)
    movements: list[Movement] = []
    for client, state, first_here in zip(scenario.clients, clients, first_actives, strict=True):
        for task in state.active - client.previous_active:
            owner = _owner(scenario, history, task)
            why = _why(client, owner, task) if task in first_here else _EXCHANGED
            movements.append(_active(scenario, client, owner, task, task in stateful, why))
        movements += _standbys(scenario, client, state)
    return tuple(
        sorted(movements, key=lambda m: (m.task, m.kind == MovementKind.STANDBY, m.destination))
    )


_EXCHANGED = "tasks were exchanged to save traffic between racks; the destination got this one"


def _owner(scenario: Scenario, history: StickyHistory, task: TaskId) -> Client | None:
    place = history.owner(task)
    return None if place is None else scenario.clients[place]


def _why(client: Client, owner: Client | None, task: TaskId) -> str:
    """Return the reason against the source and for the destination."""
    source = "no client ran it before" if owner is None else "the source has its share of tasks"
    had_standby = task in client.previous_standby
    return (
        f"{source}; the destination {'had its standby' if had_standby else 'is the least loaded'}"
    )


def _active(
    scenario: Scenario, client: Client, owner: Client | None, task: TaskId, stateful: bool, why: str
) -> Movement:
    source = owner.process_id if owner else None
    if not stateful:
        return Movement(task, source, client.process_id, MovementKind.STATELESS, why)
    lag, source_lag = client.lags[task], owner.lags[task] if owner else None
    caught_up = is_caught_up(lag, scenario.configs.acceptable_recovery_lag)
    kind = MovementKind.ACTIVE if caught_up else MovementKind.COLD
    reason = f"{why} and {lag_clause(lag)}"
    return Movement(task, source, client.process_id, kind, reason, lag, source_lag)


def _standbys(scenario: Scenario, client: Client, state: ClientState) -> Iterator[Movement]:
    for task in state.standby - client.previous_active - client.previous_standby:
        lag = client.lags[task]
        reason = f"one of {scenario.configs.num_standby_replicas} standbys is new here"
        reason = f"{reason}; the destination {lag_clause(lag)}"
        yield Movement(task, None, client.process_id, MovementKind.STANDBY, reason, lag)
