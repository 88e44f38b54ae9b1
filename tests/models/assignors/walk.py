"""A group from rebalance to rebalance: what one decides is what the next one finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide

RUNNING = -2
#: The lag of a client that has nothing of a task yet, in offsets.
NOTHING_RESTORED = 100_000


@dataclass(frozen=True)
class Generation:
    """What a rebalance gave to whom, in words: tasks by client, without those who got none."""

    active: Mapping[str, str]
    standby: Mapping[str, str]
    warmup: Mapping[str, str]
    probing: bool


class Walk:
    """A group of clients, called by names, and its rebalances."""

    def __init__(
        self,
        assignor: str,
        *,
        stateful: str = "",
        stateless: str = "",
        names: Mapping[str, str] | None = None,
        **config: int,
    ) -> None:
        self.assignor = assignor
        self._names = dict(names or {})
        self._stateful = [self._names.get(task, task) for task in stateful.split()]
        self._stateless = [self._names.get(task, task) for task in stateless.split()]
        self._config = {name.replace("_", "."): value for name, value in config.items()}
        self._processes: dict[str, str] = {}
        self._clients: dict[str, dict[str, Any]] = {}

    def join(self, name: str, *, process: int, threads: int = 1, has: str = "") -> None:
        """Add a client that has restored nothing; ``has`` is what it runs already."""
        active = [self._names.get(task, task) for task in has.split()]
        self._processes[name] = str(UUID(int=process))
        self._clients[name] = {
            "capacity": threads,
            "previous_active": active,
            "previous_standby": [],
            "lags": {t: RUNNING if t in active else NOTHING_RESTORED for t in self._stateful},
        }

    def leave(self, name: str) -> None:
        del self._clients[name]

    def lag(self, name: str, task: str, offsets: int) -> None:
        self._clients[name]["lags"][self._names.get(task, task)] = offsets

    def catch_up(self) -> None:
        """Advance time until every copy of every client is restored."""
        for client in self._clients.values():
            client["lags"] |= dict.fromkeys(client["previous_standby"], 0)

    def scenario(self) -> dict[str, Any]:
        """Describe the group to an assignor; all configs are given, since Kafka's need all."""
        return {
            "name": "walk",
            "assignor": self.assignor,
            "config": {
                "acceptable.recovery.lag": 10_000,
                "max.warmup.replicas": 2,
                "num.standby.replicas": 0,
                "probing.rebalance.interval.ms": 600_000,
            }
            | self._config,
            "tasks": {task: {"stateful": True} for task in self._stateful}
            | {task: {"stateful": False} for task in self._stateless},
            "clients": {self._processes[name]: one for name, one in self._clients.items()},
        }

    def rebalance(self) -> Generation:
        """Decide, and let every client have from then on what it was given.

        A client that no longer runs a task still has its state on disk, up to date.
        """
        decision = decide(parse_scenario(self.scenario())).to_dict()
        given = {name: decision["clients"][self._processes[name]] for name in self._clients}
        for name, client in self._clients.items():
            client["previous_active"] = given[name]["active"]
            client["previous_standby"] = given[name]["standby"]
            lags = client["lags"]
            for task in self._stateful:
                lags[task] = max(lags[task], 0) if task not in given[name]["active"] else RUNNING
        return Generation(
            self._told(given, "active"),
            self._told(given, "standby"),
            self._told(given, "warmup"),
            decision["probing_rebalance_needed"],
        )

    def _told(self, given: Mapping[str, Any], kind: str) -> dict[str, str]:
        names = {task: name for name, task in self._names.items()}
        return {
            client: " ".join(names.get(task, task) for task in one[kind])
            for client, one in given.items()
            if one[kind]
        }


#: Makes a group, as Walk does.
Begin = Callable[..., Walk]
