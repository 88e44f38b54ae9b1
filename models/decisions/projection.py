"""What the next rebalance would see, if it came now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caughtup.models.assignment.catch_up import RUNNING, is_caught_up
from caughtup.models.assignment.scenario_lags import greatest_lags
from caughtup.models.decisions.caught_up_copies import acceptable_recovery_lag
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import TaskId
from caughtup.models.tasks.positions import CopyKey, TaskPosition


def project(
    generation: StreamsGeneration,
    scenario: Mapping[str, Any],
    positions: Mapping[CopyKey, TaskPosition],
) -> dict[str, Any] | None:
    """Give the scenario of a rebalance in which each client comes back with what it has now.

    ``scenario`` is what the generation was decided from; ``positions`` are what processes
    reported since, at or after the generation's beginning. Where nobody reported anything since,
    a lag is the one of then. None while a task is held back: its owner has yet to let go of it.
    """
    running = {
        str(task): str(process)
        for process, client in generation.clients.items()
        for task in client.active()
    }
    if running.keys() != scenario["tasks"].keys():
        return None
    acceptable = acceptable_recovery_lag(scenario)
    before = greatest_lags(scenario)
    greatest = {task: _lag(lag, None, acceptable, is_active=False) for task, lag in before.items()}
    reported: dict[str, dict[TaskId, TaskPosition]] = {}
    for (process_id, task), position in positions.items():
        if position.at_ms >= generation.as_of_ms:
            reported.setdefault(process_id, {})[task] = position
    clients: dict[str, Any] = {}
    for process, client in generation.clients.items():
        name = str(process)
        then = scenario["clients"].get(name)
        if then is None:
            return None
        active, standby = client.active(), client.standby()
        own = {TaskId.parse(text): lag for text, lag in then["lags"].items()}
        news = reported.get(name, {})
        lags = {}
        for task in sorted({*own, *news, *active}):
            text = str(task)
            lag = own.get(task, before.get(text))
            if lag is None:
                continue  # without state
            lag = _lag(lag, news.get(task), acceptable, is_active=task in active)
            if lag != greatest.get(text):
                lags[text] = lag
        clients[name] = {
            **then,
            "previous_active": [str(task) for task in sorted(active)],
            "previous_standby": [str(task) for task in sorted(standby)],
            "lags": lags,
        }
    return {**scenario, **({"greatest_lags": greatest} if greatest else {}), "clients": clients}


def _lag(then: int, position: TaskPosition | None, acceptable: int, *, is_active: bool) -> int:
    """Give the lag of a copy now, in offsets or Kafka's sentinels."""
    if position is not None and position.role == "active" and is_active:
        return RUNNING
    if position is not None and position.lag is not None:
        return position.lag
    if is_active and is_caught_up(then, acceptable):
        return RUNNING
    # Who ran it until this rebalance has all of it.
    return 0 if then == RUNNING else then
