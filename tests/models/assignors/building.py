"""Small scenarios, said in few words."""

from __future__ import annotations

import copy
from typing import Any
from uuid import UUID

from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.ids import TaskId
from tests.support.groups.streams import RUNNING

#: In the place of a value: the field isn't there.
ABSENT = object()


def task(text: str) -> TaskId:
    return TaskId.parse(text)


def client(
    lags: dict[str, int] | None = None,
    *,
    active: tuple[str, ...] = (),
    standby: tuple[str, ...] = (),
    capacity: int = 1,
) -> dict[str, Any]:
    """Describe a client; what it runs needs no lag."""
    return {
        "capacity": capacity,
        "previous_active": list(active),
        "previous_standby": list(standby),
        "lags": dict.fromkeys(active, RUNNING) | (lags or {}),
    }


def described(
    *clients: dict[str, Any],
    stateful: tuple[str, ...] = (),
    stateless: tuple[str, ...] = (),
    acceptable: int = 100,
    warmups: int = 2,
    standbys: int = 0,
    assignor: str = "high_availability",
) -> dict[str, Any]:
    """Describe a scenario; the clients are numbered from 1, and lag 100,000 unless they say."""
    for one in clients:
        for text in stateless:
            one["lags"].pop(text, None)
        for text in stateful:
            one["lags"].setdefault(text, 100_000)
    return {
        "name": "test",
        "assignor": assignor,
        "config": {
            "acceptable.recovery.lag": acceptable,
            "max.warmup.replicas": warmups,
            "num.standby.replicas": standbys,
        },
        "tasks": {text: {"stateful": True} for text in stateful}
        | {text: {"stateful": False} for text in stateless},
        "clients": {str(UUID(int=number)): one for number, one in enumerate(clients, 1)},
    }


def changed(scenario: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Copy a described scenario but for the field at ``path``; with ABSENT it has none."""
    scenario = copy.deepcopy(scenario)
    *owners, last = path.split("/")
    owner = scenario
    for name in owners:
        owner = owner[name]
    if value is ABSENT:
        del owner[last]
    else:
        owner[last] = value
    return scenario


def scenario(*clients: dict[str, Any], **rest: Any) -> Scenario:
    """Make a scenario of what ``described`` describes."""
    return parse_scenario(described(*clients, **rest))
