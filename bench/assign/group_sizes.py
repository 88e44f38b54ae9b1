"""The groups of Kafka's own scale test, as scenarios of ``caughtup assign``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from caughtup.models.assignment.client_state import RUNNING
from caughtup.models.ids import ProcessId
from caughtup.models.replay.recorded import ScenarioJson

#: The end offset of every changelog, which is the lag while nothing is restored.
_END_OFFSET = 100_000
_WRITTEN = re.compile(r"([0-9]{1,6})x([0-9]{1,6})x([0-9]{1,6})x([0-9]{1,6})")


class GroupSize(NamedTuple):
    """A group's size; ``threads`` of each client, ``standbys`` of each task."""

    partitions: int
    clients: int
    threads: int
    standbys: int

    @classmethod
    def parse(cls, text: str) -> GroupSize:
        """Parse ``1000x100x1x50``. Raises ValueError for other text, and without a client."""
        match = _WRITTEN.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a shape such as 1000x100x1x50")
        size = cls(*map(int, match.groups()))
        if not size.partitions or not size.clients or not size.threads:
            raise ValueError(f"{text!r} has no partitions, clients or threads")
        return size

    def __str__(self) -> str:
        return "x".join(map(str, self))


_STICKY = (
    GroupSize(2_000, 2, 1, 1),
    GroupSize(1_000, 1_000, 1, 1),
    GroupSize(1_000, 100, 1, 20),
    GroupSize(1_000, 10, 1_000, 1),
)
_HIGH_AVAILABILITY = (
    GroupSize(6_000, 2, 1, 1),
    GroupSize(1_000, 1_000, 1, 1),
    GroupSize(1_000, 100, 1, 50),
    GroupSize(1_000, 10, 1_000, 1),
)
#: The group sizes of StreamsAssignmentScaleTest, by assignor.
SCALE_TEST_SIZES: Mapping[str, tuple[GroupSize, ...]] = {
    "high_availability": _HIGH_AVAILABILITY,
    "minimal_movement": _HIGH_AVAILABILITY,
    "sticky": _STICKY,
    "fallback_prior": _STICKY,
}
#: For our own assignors, the assignor of Kafka with which they are compared.
YARDSTICKS: Mapping[str, str] = {"minimal_movement": "high_availability"}


def first_round(assignor: str, size: GroupSize) -> dict[str, object]:
    """Return the scenario of a new group without any former tasks.

    Source: StreamsAssignmentScaleTest: one subtopology with a store, every other config Kafka's.
    """
    tasks = [f"0_{partition}" for partition in range(size.partitions)]
    return {
        "name": f"{assignor} {size}",
        "assignor": assignor,
        "config": {
            "acceptable.recovery.lag": 10_000,
            "max.warmup.replicas": 2,
            "num.standby.replicas": size.standbys,
            "probing.rebalance.interval.ms": 600_000,
        },
        "tasks": {task: {"stateful": True} for task in tasks},
        "clients": {
            str(ProcessId.of(number)): {
                "capacity": size.threads,
                "previous_active": [],
                "previous_standby": [],
                "lags": dict.fromkeys(tasks, _END_OFFSET),
            }
            for number in range(size.clients)
        },
    }


def next_round(scenario: ScenarioJson, decision: Mapping[str, Any]) -> dict[str, object]:
    """Return the scenario after a decision, which has the format of ``caughtup assign``.

    Actives run, and standbys have restored nothing yet, as in the scale test.
    """
    clients = {}
    for process_id, client in scenario["clients"].items():
        given = decision["clients"][process_id]
        lags = dict.fromkeys(scenario["tasks"], _END_OFFSET)
        clients[process_id] = {
            "capacity": client["capacity"],
            "previous_active": given["active"],
            "previous_standby": given["standby"],
            "lags": lags | dict.fromkeys(given["active"], RUNNING),
        }
    return {**scenario, "clients": clients}


def one_more_client(scenario: ScenarioJson) -> dict[str, object]:
    """Return the scenario with one more client without tasks, with the greatest process id."""
    clients = scenario["clients"]
    joining = {
        "capacity": max(client["capacity"] for client in clients.values()),
        "previous_active": [],
        "previous_standby": [],
        "lags": dict.fromkeys(scenario["tasks"], _END_OFFSET),
    }
    return {**scenario, "clients": clients | {str(ProcessId.of(len(clients))): joining}}
