"""Generate groups that gained or lost clients, from seeds."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.simulation.rounds import play

_ZONES = 3
_BROKERS = 6
_FACTOR = 2
_WIDEST = 4


class Change(NamedTuple):
    """A change of a group's number of clients, from ``before`` to ``after``."""

    before: int
    after: int
    tasks: int

    def __str__(self) -> str:
        return f"{self.before} → {self.after}, {self.tasks} tasks"


CHANGES = (
    Change(3, 4, 48),
    Change(10, 11, 100),
    Change(20, 21, 400),
    Change(10, 20, 100),
    Change(10, 9, 100),
    Change(10, 7, 100),
)


class Variety(NamedTuple):
    """The properties of a group; ``unequal`` clients have one to four stream threads."""

    standbys: int
    unequal: bool
    tags: bool
    racks: bool

    def __str__(self) -> str:
        words = [f"{self.standbys} standbys", "unequal" if self.unequal else "equal"]
        words += ["tags"] * self.tags + ["racks"] * self.racks
        return ", ".join(words)


VARIETIES = tuple(
    Variety(standbys, unequal, tags, racks)
    for tags, racks in ((False, False), (True, False), (False, True), (True, True))
    for standbys in (0, 1)
    for unequal in (False, True)
)


def changed_group(change: Change, variety: Variety, seed: int) -> Scenario:
    """Return the scenario of a balanced group whose clients have changed.

    It was balanced by HighAvailabilityTaskAssignor; with racks by minimal_movement, since Kafka's
    search for the least traffic takes minutes for a hundred such groups. The seed decides everything
    else: process ids, the tasks' subtopologies and sizes, threads, zones, racks, who leaves.
    """
    rng = random.Random(f"{change} {variety} {seed}")
    every = _describe(rng, max(change.before, change.after), change.tasks, variety)
    names = sorted(every["clients"])
    first = set(rng.sample(names, change.before))
    later = set(rng.sample(sorted(first), change.after)) if change.after < change.before else names
    described = {name: one for name, one in every["clients"].items() if name in first}
    balanced = play(parse_scenario({**every, "clients": described})).scenario
    known = {str(client.process_id): client for client in balanced.clients}
    whole = parse_scenario(
        {**every, "clients": {name: one for name, one in every["clients"].items() if name in later}}
    )
    clients = tuple(known.get(str(one.process_id), one) for one in whole.clients)
    return replace(whole, clients=clients)


def _describe(rng: random.Random, clients: int, tasks: int, variety: Variety) -> dict[str, Any]:
    """Return the scenario of a new group, in which no client has tasks."""
    subtopologies = rng.randint(1, 3)
    ids = [f"{n % subtopologies}_{n // subtopologies}" for n in range(tasks)]
    ends = {task: rng.randint(20_000, 5_000_000) for task in ids}
    config: dict[str, object] = {
        "acceptable.recovery.lag": 10_000,
        "max.warmup.replicas": 2,
        "num.standby.replicas": variety.standbys,
        "probing.rebalance.interval.ms": 600_000,
    }
    described = {}
    for number in range(clients):
        zone = number % _ZONES
        described[str(UUID(int=rng.getrandbits(128)))] = {
            "capacity": rng.randint(1, _WIDEST) if variety.unequal else 1,
            "previous_active": [],
            "previous_standby": [],
            "lags": ends,
            "tags": {"zone": f"zone-{zone}"} if variety.tags else {},
            "rack": f"rack-{zone}" if variety.racks else None,
        }
    scenario: dict[str, object] = {
        "assignor": "minimal_movement" if variety.racks else "high_availability",
        "config": config,
        "tasks": {task: {"stateful": True} for task in ids},
        "clients": described,
    }
    if variety.tags:
        config["rack.aware.assignment.tags"] = ["zone"]
    if variety.racks:
        config["rack.aware.assignment.strategy"] = rng.choice(
            ["min_traffic", "balance_subtopology"]
        )
        _place(rng, scenario)
    return scenario


def _place(rng: random.Random, scenario: dict[str, Any]) -> None:
    """Assign every task a source partition and a changelog partition with these replicas."""
    scenario["brokers"] = {str(broker): f"rack-{broker % _ZONES}" for broker in range(_BROKERS)}
    scenario["replicas"] = {}
    for name, task in scenario["tasks"].items():
        subtopology, partition = map(int, name.split("_"))
        for kind, topic in (
            ("source_partitions", f"in-{subtopology}"),
            ("changelog_partitions", f"app-store-{subtopology}-changelog"),
        ):
            task[kind] = [[topic, partition]]
            replicas = rng.sample(range(_BROKERS), _FACTOR)
            scenario["replicas"][f"{topic}-{partition}"] = replicas
