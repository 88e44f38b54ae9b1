"""What the next rebalance would see, if it came now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caughtup.models.assignors.catch_up import RUNNING, UNKNOWN, is_caught_up
from caughtup.models.assignors.configs import Configs
from caughtup.models.groups import StreamsGeneration
from caughtup.models.ids import TaskId
from caughtup.models.task_positions import CopyKey, TaskPosition

_DEFAULT_LAG = Configs().acceptable_recovery_lag
#: A copy that may take its task over, by process and task as their ids' text.
CaughtUpCopy = tuple[str, str]


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
    clients: dict[str, Any] = {}
    for process, client in generation.clients.items():
        then = scenario["clients"].get(str(process))
        if then is None:
            return None
        active, standby = client.active(), client.standby()
        lags = {}
        for text, lag in then["lags"].items():
            task = TaskId.parse(text)
            position = positions.get(CopyKey(str(process), task))
            if position is not None and position.at_ms < generation.as_of_ms:
                position = None
            lags[text] = _lag(lag, position, acceptable, is_active=task in active)
        clients[str(process)] = {
            **then,
            "previous_active": [str(task) for task in sorted(active)],
            "previous_standby": [str(task) for task in sorted(standby)],
            "lags": lags,
        }
    return {**scenario, "clients": clients}


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


def acceptable_recovery_lag(scenario: Mapping[str, Any]) -> int:
    """Give the lag at which a copy counts as caught up, in offsets."""
    lag: int = scenario["config"].get("acceptable.recovery.lag", _DEFAULT_LAG)
    return lag


def caught_up_copies(scenario: Mapping[str, Any]) -> frozenset[CaughtUpCopy]:
    """Name the copies that aren't running and are caught up."""
    acceptable = acceptable_recovery_lag(scenario)
    return frozenset(
        (process, task)
        for process, client in scenario["clients"].items()
        for task, lag in client["lags"].items()
        if lag not in (RUNNING, UNKNOWN) and is_caught_up(lag, acceptable)
    )
