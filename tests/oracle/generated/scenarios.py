"""Scenarios made from a seed, reaching for the places where two assignors could part."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any

RUNNING, UNKNOWN = -2, -3
LONG_MAX = (1 << 63) - 1


def generate(seed: int) -> dict[str, Any]:
    """Make a scenario as ``caughtup assign`` reads it; the same one for the same seed."""
    rng = random.Random(seed)
    acceptable = rng.choice([0, 1, 100, 10_000, 10_000, LONG_MAX])
    clients = _clients(rng)
    tasks = _tasks(rng)
    stateful = [task for task, value in tasks.items() if value["stateful"]]
    _give_history(rng, clients, tasks)
    for client in clients.values():
        client["lags"] = {task: _lag(rng, acceptable, task, client) for task in stateful}
    return {
        "name": f"seed {seed}",
        "assignor": "high_availability",
        "config": {
            "acceptable.recovery.lag": acceptable,
            "max.warmup.replicas": rng.choice([1, 1, 2, 2, 3, 5, 1_000]),
            "num.standby.replicas": rng.choice([0, 0, 1, 1, 2, 3]),
            "probing.rebalance.interval.ms": 600_000,
        },
        "tasks": tasks,
        "clients": clients,
    }


def _clients(rng: random.Random) -> dict[str, dict[str, Any]]:
    count = rng.choice([1, 2, 3, 4, rng.randint(5, 9), rng.randint(8, 20), rng.randint(13, 40)])
    widest = rng.choice([1, 2, 4, 50])
    numbered = rng.random() < 0.3
    clients: dict[str, dict[str, Any]] = {}
    while len(clients) < count:
        number = len(clients) + 1 if numbered and rng.random() < 0.8 else rng.getrandbits(128)
        if rng.random() < 0.2:
            number |= 1 << 127 | 1 << 63
        clients[str(uuid.UUID(int=number))] = {"capacity": rng.randint(1, widest)}
    return clients


def _tasks(rng: random.Random) -> dict[str, dict[str, Any]]:
    tasks: dict[str, dict[str, Any]] = {}
    for subtopology in rng.sample([0, 1, 2, 3, 9, 10, 11, 127, 128, 300], rng.randint(1, 4)):
        stateful = rng.random() < 0.75
        first = rng.choice([0, 0, 0, 5, 120])
        for partition in range(first, first + rng.choice([1, 2, 5, 12, rng.randint(1, 40)])):
            tasks[f"{subtopology}_{partition}"] = {"stateful": stateful}
    return tasks


def _give_history(
    rng: random.Random, clients: Mapping[str, dict[str, Any]], tasks: Mapping[str, Any]
) -> None:
    """Draw who had what; often a few clients had it all, because the others have just joined."""
    for client in clients.values():
        client["previous_active"], client["previous_standby"] = [], []
    share = rng.choice([0.0, 0.2, 0.5, 1.0])
    owners = rng.sample(list(clients.values()), max(1, round(len(clients) * share)))
    lost = rng.choice([0.0, 0.0, 0.1, 1.0])
    copies = rng.choice([0, 1, 1, 2, 4])
    for task, value in tasks.items():
        if rng.random() >= lost:
            rng.choice(owners)["previous_active"].append(task)
        if value["stateful"]:
            for client in rng.sample(list(clients.values()), min(copies, len(clients))):
                if task not in client["previous_active"]:
                    client["previous_standby"].append(task)


def _lag(rng: random.Random, acceptable: int, task: str, client: Mapping[str, Any]) -> int:
    edges = [acceptable - 1, acceptable, acceptable + 1]
    if task in client["previous_active"] and rng.random() < 0.9:
        return RUNNING
    if rng.random() < 0.02:
        return UNKNOWN
    if task in client["previous_standby"]:
        lag = rng.choice([0, *edges, 5, rng.randint(0, 20_000), 1_000_000])
    else:
        lag = rng.choice([1_000_000, 1_000_000, rng.randint(0, 2_000_000), *edges])
    return min(max(lag, 0), LONG_MAX)


def generate_uneven(seed: int) -> dict[str, Any]:
    """Make a scenario in which loads drop while clients are queued by load.

    Threads differ from client to client, many clients are caught up, and all movements but one go
    without a warm-up: this is where the heap of Kafka's ConstrainedPrioritySet takes harm, and a
    client that isn't the least loaded gets the task.
    """
    rng = random.Random(seed)
    count = rng.randint(8, 40)
    widest = rng.choice([3, 5, 10, 50])
    caught_up = rng.choice([0.1, 0.3, 0.5, 0.7])
    tasks = {f"0_{partition}": {"stateful": True} for partition in range(rng.randint(count, 99))}
    clients = {
        str(uuid.UUID(int=rng.getrandbits(128))): {
            "capacity": rng.choice([1, rng.randint(1, widest)]),
            "previous_active": [],
            "previous_standby": [],
            "lags": {
                task: 0 if rng.random() < caught_up else rng.randint(200, 100_000) for task in tasks
            },
        }
        for _ in range(count)
    }
    return {
        "name": f"uneven seed {seed}",
        "assignor": "high_availability",
        "config": {
            "acceptable.recovery.lag": 100,
            "max.warmup.replicas": 1,
            "num.standby.replicas": rng.choice([0, 0, 1, 2]),
            "probing.rebalance.interval.ms": 600_000,
        },
        "tasks": tasks,
        "clients": clients,
    }


def numbers_seen(scenario: Mapping[str, Any]) -> Counter[object]:
    """Count what there is of names and numbers that Java orders otherwise than we might."""
    tasks = [tuple(map(int, task.split("_"))) for task in scenario["tasks"]]
    return Counter(
        {
            "negative UUID": any(name[0] in "89abcdef" for name in scenario["clients"]),
            "subtopology of 10 or more": any(10 <= s < 128 for s, _ in tasks),
            "subtopology of 128 or more": any(s >= 128 for s, _ in tasks),
            "partition of 10 or more": any(10 <= p < 128 for _, p in tasks),
            "partition of 128 or more": any(p >= 128 for _, p in tasks),
        }
    )
