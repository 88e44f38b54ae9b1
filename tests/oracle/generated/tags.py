"""Scenarios of groups with client tags, made from a seed."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.generated.racks import generate_racked
from tests.oracle.generated.scenarios import LONG_MAX, generate, generate_uneven

KEYS = ("zone", "cluster", "hall", "Regal")


def generate_tagged(seed: int) -> dict[str, Any]:
    """Make a scenario in which rack.aware.assignment.tags names one to three tags.

    Clients may lack some tags or all of them, have others that the config doesn't name, and have
    tags of which all values are different, or all the same.
    """
    scenario = generate(seed) if seed % 5 else generate_uneven(seed)
    rng = random.Random(f"tags {seed}")
    scenario["config"]["num.standby.replicas"] = rng.choice([0, 1, 1, 2, 2, 3, 3, 4])
    scenario["config"]["rack.aware.assignment.tags"] = rng.sample(KEYS, rng.randint(1, 3))
    _tag(rng, scenario["clients"])
    return scenario


def generate_tagged_and_racked(seed: int) -> dict[str, Any]:
    """Make a scenario with both: standbys are exchanged between racks if tags allow it."""
    scenario = generate_racked(seed)
    rng = random.Random(f"both {seed}")
    scenario["config"] |= {
        # Every client is as good as caught up, so that the exchanges show in the result.
        "acceptable.recovery.lag": LONG_MAX,
        "num.standby.replicas": rng.choice([1, 1, 2, 3]),
        "rack.aware.assignment.tags": rng.sample(KEYS, rng.randint(1, 3)),
    }
    _tag(rng, scenario["clients"])
    return scenario


def generate_tagged_fleet(seed: int) -> dict[str, Any]:
    """Make a scenario of hundreds of tasks, of which many can't have what their tags ask for.

    These come last, in the order of a HashMap in which tasks collide: one subtopology up and 31
    partitions down is the same hash code. With partitions in steps of 31, buckets become trees.
    """
    rng = random.Random(f"fleet {seed}")
    crowded = rng.random() < 0.4
    tasks = [
        f"{subtopology}_{partition}"
        for subtopology in range(rng.randint(10, 15) if crowded else rng.randint(1, 4))
        for partition in range(0, rng.randint(330, 480) if crowded else 120, 31 if crowded else 1)
    ]
    clients = {
        str(uuid.UUID(int=rng.getrandbits(128))): {
            "capacity": rng.choice([1, 1, 2, 3, 8]),
            "previous_active": [],
            "previous_standby": [],
            "lags": dict.fromkeys(tasks, 0),
        }
        for _ in range(rng.randint(3, 12))
    }
    keys = rng.sample(KEYS, rng.randint(2, 3))
    _tag_alike(rng, clients, keys)
    return {
        "name": f"fleet seed {seed}",
        "assignor": "high_availability",
        "config": {
            "acceptable.recovery.lag": 100,
            "max.warmup.replicas": 2,
            "num.standby.replicas": rng.choice([1, 2, 2, 3]),
            "probing.rebalance.interval.ms": 600_000,
            "rack.aware.assignment.tags": keys,
        },
        "tasks": {task: {"stateful": True} for task in tasks},
        "clients": clients,
    }


def _tag(rng: random.Random, clients: Mapping[str, dict[str, Any]]) -> None:
    """Tag clients at random, but leave some tags out."""
    values = {key: rng.choice([1, 2, 2, 3, 3, 5, 50]) for key in KEYS}
    keys = rng.sample(KEYS, rng.choice([1, 2, 3, 4, 4]))
    lacking = rng.choice([0.0, 0.0, 0.0, 0.1, 0.5])
    for client in clients.values():
        if rng.random() >= lacking / 4:
            client["tags"] = {
                key: f"{key}-{rng.randrange(values[key])}"
                for key in keys
                if rng.random() >= lacking
            }


def _tag_alike(
    rng: random.Random, clients: Mapping[str, dict[str, Any]], keys: Sequence[str]
) -> None:
    """Tag clients so that each shares a tag with most of the others, and some have the same."""
    kinds = [dict.fromkeys(keys, "usual")]
    for _ in range(rng.randint(1, 4)):
        other = rng.sample(keys, rng.randint(1, len(keys) - 1))
        kinds.append(kinds[0] | {key: f"other {rng.randrange(3)}" for key in other})
    for client in clients.values():
        client["tags"] = dict(rng.choice(kinds))
