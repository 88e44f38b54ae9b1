"""Scenarios of groups with client tags, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from tests.oracle.generated_scenarios import generate, generate_uneven

KEYS = ("zone", "cluster", "hall", "Regal")


def generate_tagged(seed: int) -> dict[str, Any]:
    """Make a scenario in which rack.aware.assignment.tags names one to three tags.

    Clients may lack some tags or all of them, have others that the config doesn't name, and have
    tags of which all values are different, or all the same.
    """
    scenario = generate(seed) if seed % 2 else generate_uneven(seed)
    rng = random.Random(f"tags {seed}")
    config = scenario["config"]
    config["num.standby.replicas"] = rng.choice([0, 1, 1, 2, 2, 3, 3, 4])
    config["rack.aware.assignment.tags"] = rng.sample(KEYS, rng.randint(1, 3))
    _tag(rng, scenario["clients"])
    return scenario


def generate_tagged_fleet(seed: int) -> dict[str, Any]:
    """Make a scenario of hundreds of tasks, most of them with too few places for their standbys.

    So the fallback decides, in the order of a HashMap in whose buckets tasks collide: 31
    partitions on, and one subtopology down, there is a task with the same hash code.
    """
    rng = random.Random(f"fleet {seed}")
    scenario = generate(seed)
    tasks = [
        f"{subtopology}_{partition}"
        for subtopology in rng.sample(range(40), rng.randint(1, 14))
        for partition in range(rng.randint(1, 300))
    ]
    for step in (rng.choice([1, 1, 2]),):
        tasks = tasks[::step]
    clients = dict(list(scenario["clients"].items())[: rng.choice([3, 6, 12])])
    for client in clients.values():
        client["previous_active"], client["previous_standby"] = [], []
        client["lags"] = dict.fromkeys(tasks, 0)
        client["capacity"] = rng.choice([1, 1, 2, 3, 8])
    scenario["tasks"] = {task: {"stateful": True} for task in tasks}
    scenario["clients"] = clients
    scenario["config"] |= {
        "num.standby.replicas": rng.choice([1, 2, 2, 3]),
        "rack.aware.assignment.tags": rng.sample(KEYS, rng.randint(1, 3)),
    }
    _tag(rng, clients)
    return scenario


def _tag(rng: random.Random, clients: Mapping[str, dict[str, Any]]) -> None:
    values = {key: rng.choice([1, 2, 2, 3, 3, 5, 50]) for key in KEYS}
    lacking = rng.choice([0.0, 0.0, 0.1, 0.5])
    keys = rng.sample(KEYS, rng.randint(1, len(KEYS)))
    for client in clients.values():
        if rng.random() < lacking / 4:
            continue
        client["tags"] = {
            key: f"{key}-{rng.randrange(values[key])}" for key in keys if rng.random() >= lacking
        }
