"""Say what moves under the sticky assignor, and why, in sentences for operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from caughtup.models.assignors.catch_up import is_caught_up
from caughtup.models.assignors.client_state import ClientState
from caughtup.models.assignors.decision import Kind, Movement
from caughtup.models.assignors.explanation import says
from caughtup.models.assignors.scenario import Client, Scenario
from caughtup.models.assignors.sticky_history import StickyHistory
from caughtup.models.ids import TaskId


def explain_sticky(
    scenario: Scenario, clients: Sequence[ClientState], history: StickyHistory
) -> tuple[Movement, ...]:
    """List the copies that clients get and didn't have before, in TaskId order.

    ``clients`` are the final states, in the scenario's order. The assignor itself pays no heed to
    lags: a movement is ``cold`` where the client that gets the active isn't caught up.
    """
    stateful = frozenset(scenario.stateful)
    movements: list[Movement] = []
    for client, state in zip(scenario.clients, clients, strict=True):
        movements += (
            _active(scenario, client, task, task in stateful, history)
            for task in state.active - client.previous_active
        )
        movements += _standbys(scenario, client, state)
    return tuple(sorted(movements, key=lambda m: (m.task, m.kind == Kind.STANDBY, m.destination)))


def _active(
    scenario: Scenario, client: Client, task: TaskId, stateful: bool, history: StickyHistory
) -> Movement:
    place = history.owner(task)
    owner = None if place is None else scenario.clients[place]
    why = "no client ran it before" if owner is None else "the source has its share of tasks"
    here = "is the least loaded"
    if task in client.previous_standby:
        here = "had its standby"
    kind, lag, source_lag = Kind.STATELESS, None, None
    if stateful:
        lag, source_lag = client.lags[task], owner.lags[task] if owner else None
        caught_up = is_caught_up(lag, scenario.configs.acceptable_recovery_lag)
        kind = Kind.ACTIVE if caught_up else Kind.COLD
        here = f"{here} and {says(lag)}"
    return Movement(
        task,
        owner.process_id if owner else None,
        client.process_id,
        kind,
        f"{why}; the destination {here}",
        lag,
        source_lag,
    )


def _standbys(scenario: Scenario, client: Client, state: ClientState) -> Iterator[Movement]:
    for task in state.standby - client.previous_active - client.previous_standby:
        lag = client.lags[task]
        reason = f"one of {scenario.configs.num_standby_replicas} standbys is new here"
        reason = f"{reason}; the destination {says(lag)}"
        yield Movement(task, None, client.process_id, Kind.STANDBY, reason, lag)
