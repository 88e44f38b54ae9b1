"""Scenarios made from a seed for the sticky assignor: who had what, and Java's hash tables."""

from __future__ import annotations

import random
import uuid
from typing import Any

RUNNING = -2


def generate_sticky(seed: int) -> dict[str, Any]:
    """Make a scenario as ``caughtup assign`` reads it; the same one for the same seed."""
    rng = random.Random(seed)
    tasks = _tasks(rng)
    clients = _clients(rng, len(tasks))
    _give_history(rng, clients, tasks)
    stateful = [task for task, value in tasks.items() if value["stateful"]]
    for client in clients.values():
        ran = set(client["previous_active"])
        client["lags"] = {
            task: RUNNING if task in ran else rng.choice([0, 10_001]) for task in stateful
        }
    return {
        "name": f"sticky seed {seed}",
        "assignor": rng.choice(["sticky", "sticky", "fallback_prior"]),
        "config": {
            "acceptable.recovery.lag": 10_000,
            "max.warmup.replicas": 2,
            "num.standby.replicas": rng.choice([0, 0, 0, 1, 1, 1, 2, 3]),
            "probing.rebalance.interval.ms": 600_000,
        },
        "tasks": tasks,
        "clients": clients,
    }


def _tasks(rng: random.Random) -> dict[str, dict[str, Any]]:
    tasks: dict[str, dict[str, Any]] = {}
    most = rng.choice([4, 12, 12, 12, 24, 24, 130])
    for subtopology in rng.sample([0, 1, 2, 3, 9, 10, 11, 127, 128, 300], rng.randint(1, 4)):
        stateful = rng.random() < 0.75
        first = rng.choice([0, 0, 0, 5, 120])
        for partition in range(first, first + rng.choice([1, 2, most, rng.randint(1, most)])):
            tasks[f"{subtopology}_{partition}"] = {"stateful": stateful}
    if rng.random() < 0.1:
        # One subtopology up and 31 partitions down is the same hash code: a bucket for them all.
        depth = rng.randint(9, 40)
        for subtopology in range(depth):
            tasks[f"{subtopology}_{31 * (depth - subtopology)}"] = {"stateful": True}
    return tasks


def _clients(rng: random.Random, tasks: int) -> dict[str, dict[str, Any]]:
    count = rng.choice([1, 2, 3, 4, rng.randint(5, 9), rng.randint(8, 20), rng.randint(13, 60)])
    if rng.random() < 0.1:
        count = min(tasks + rng.randint(1, 5), 60)
    widest = rng.choice([1, 1, 2, 4, 50])
    numbered = rng.choice(["no", "no", "no", "some", "in one bucket"])
    clients: dict[str, dict[str, Any]] = {}
    while len(clients) < count:
        number = rng.getrandbits(128)
        if numbered == "some" and rng.random() < 0.8:
            number = len(clients) + 1
        elif numbered == "in one bucket" and rng.random() < 0.5:
            number = rng.randint(1, 200) << 8
        elif rng.random() < 0.2:
            number |= 1 << 127 | 1 << 63
        clients[str(uuid.UUID(int=number))] = {"capacity": rng.randint(1, widest)}
    return clients


def _give_history(
    rng: random.Random, clients: dict[str, dict[str, Any]], tasks: dict[str, Any]
) -> None:
    """Draw who had what: a few had most of it, some have left since, and so have some tasks."""
    everyone = list(clients.values())
    ran: list[set[str]] = [set() for _ in everyone]
    stood_by: list[set[str]] = [set() for _ in everyone]
    skew = rng.choice([0.0, 1.0, 2.0, 5.0])
    weights = [1.0 / (place + 1) ** skew for place in range(len(everyone))]
    lost = rng.choice([0.0, 0.0, 0.1, 0.5, 1.0])
    twice = rng.choice([0.0, 0.0, 0.1])
    copies = rng.choice([0, 1, 1, 2, 4, 13, 30])
    places = range(len(everyone))
    known = list(tasks)
    if rng.random() < 0.3:
        known += [
            f"7_{partition}" for partition in rng.sample(range(1_000_000), rng.randint(1, 60))
        ]
    for task in known:
        owners = rng.choices(places, weights, k=2 if rng.random() < twice else 1)
        if rng.random() >= lost:
            for place in owners:
                ran[place].add(task)
        for place in rng.sample(places, min(rng.randint(0, copies), len(places))):
            if task not in ran[place] or rng.random() < 0.05:
                stood_by[place].add(task)
    for client, actives, standbys in zip(everyone, ran, stood_by, strict=True):
        client["previous_active"] = sorted(actives)
        client["previous_standby"] = sorted(standbys)


def join(scenario: dict[str, Any], count: int, rng: random.Random) -> None:
    """Add clients that ran nothing and lag behind nothing."""
    for _ in range(count):
        scenario["clients"][str(uuid.UUID(int=rng.getrandbits(128)))] = {
            "capacity": rng.randint(1, 4),
            "previous_active": [],
            "previous_standby": [],
            "lags": dict.fromkeys(scenario["tasks"], 0),
        }
