"""What the next rebalance would see, if it came now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from caughtup.models.assignment.catch_up import RUNNING, is_caught_up
from caughtup.models.assignment.compact import CompactScenario
from caughtup.models.assignment.scenario import Client
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import CopyKey, ProcessId, TaskId
from caughtup.models.tasks.positions import TaskPosition


def project(
    generation: StreamsGeneration,
    scenario: CompactScenario,
    positions: Mapping[CopyKey, TaskPosition],
) -> CompactScenario | None:
    """Return the scenario of a rebalance in which each client comes back with what it has now.

    ``scenario`` is what the generation was decided from; ``positions`` are what processes
    reported since, at or after the generation's beginning. Where nobody reported anything since,
    a lag is the one of then. A task that is held back counts as its owner's, who has yet to let go
    of it. None where tasks or processes are others.
    """
    running = {task for client in generation.clients.values() for task in client.active()}
    if not running <= scenario.tasks.keys():
        return None
    held_back = scenario.tasks.keys() - running
    acceptable = scenario.acceptable_recovery_lag
    before = scenario.greatest_lags
    greatest = {task: _lag(lag, None, acceptable, is_active=False) for task, lag in before.items()}
    reported: dict[str, dict[TaskId, TaskPosition]] = {}
    for (process_id, task), position in positions.items():
        if position.at_ms >= generation.as_of_ms:
            reported.setdefault(process_id, {})[task] = position
    clients: dict[ProcessId, Client] = {}
    for process, client in generation.clients.items():
        then = scenario.clients.get(process)
        if then is None:
            return None
        active = client.active() | (then.previous_active & held_back)
        news = reported.get(str(process), {})
        lags = {}
        for task in sorted({*then.lags, *news, *active}):
            lag = then.lags.get(task, before.get(task))
            if lag is None:
                continue  # without state
            lag = _lag(lag, news.get(task), acceptable, is_active=task in active)
            if lag != greatest.get(task):
                lags[task] = lag
        clients[process] = replace(
            then,
            previous_active=frozenset(active),
            previous_standby=frozenset(client.standby()),
            lags=lags,
        )
    return replace(scenario, greatest_lags=greatest, clients=clients)


def _lag(then: int, position: TaskPosition | None, acceptable: int, *, is_active: bool) -> int:
    """Return the lag of a copy now, in offsets or Kafka's sentinels."""
    if position is not None and position.role == "active" and is_active:
        return RUNNING
    if position is not None and position.lag is not None:
        return position.lag
    if is_active and is_caught_up(then, acceptable):
        return RUNNING
    # Who ran it until this rebalance has all of it.
    return 0 if then == RUNNING else then
