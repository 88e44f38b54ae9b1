"""Scenarios of groups with racks, made from a seed."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from tests.oracle.generated.scenarios import generate

STRATEGY = "rack.aware.assignment.strategy"
COSTS = ("rack.aware.assignment.traffic_cost", "rack.aware.assignment.non_overlap_cost")
LONG_MAX = (1 << 63) - 1


def generate_racked(seed: int) -> dict[str, Any]:
    """Make a scenario with a strategy, small enough for Kafka's own search for cycles.

    In one of three something has no rack, which mostly leaves the strategy without effect. Costs
    go as far as Java's ints overflow, but not to where Kafka itself looks for cycles for ever.
    """
    rng = random.Random(f"racks {seed}")
    scenario = generate(seed)
    tagged = rng.random() < 0.25
    clients = rng.choice([6, 9] if tagged else [1, 2, 3, 4, 6, 9])
    _trim(scenario, clients, rng.choice([5, 12, 12, 24, 40]))
    config = scenario["config"]
    config["num.standby.replicas"] = rng.choice([1, 2] if tagged else [0, 1, 1, 2])
    config[STRATEGY] = rng.choice(["min_traffic", "balance_subtopology"])
    if rng.random() < 0.5:
        # Every client is as good as caught up: what is decided here shows in the result.
        config["acceptable.recovery.lag"] = LONG_MAX
    for cost in COSTS:
        if rng.random() < 0.4:
            config[cost] = rng.choice([None, 0, 1, 2, 7, 10, 100, 1_500_000_000, -3])
    _place(rng, scenario)
    if tagged:
        _tag(rng, scenario)
    if rng.random() < 0.33:
        _spoil(rng, scenario)
    return scenario


def generate_large(seed: int, strategy: str) -> dict[str, Any]:
    """Make a scenario of 120 tasks in four subtopologies, on ten clients."""
    rng = random.Random(f"large {seed}")
    lags = {f"{subtopology}_{p}": 0 for subtopology in range(4) for p in range(30)}
    scenario: dict[str, Any] = {
        "name": f"large seed {seed}",
        "assignor": "high_availability",
        "config": {
            "acceptable.recovery.lag": 100,
            "max.warmup.replicas": 2,
            "num.standby.replicas": 1,
            "probing.rebalance.interval.ms": 600_000,
            STRATEGY: strategy,
        },
        "tasks": {task: {"stateful": True} for task in lags},
        "clients": {
            str(uuid.UUID(int=rng.getrandbits(128))): {
                "capacity": rng.choice([1, 1, 2]),
                "previous_active": [],
                "previous_standby": [],
                "lags": lags,
            }
            for _ in range(10)
        },
    }
    _place(rng, scenario)
    return scenario


def _trim(scenario: dict[str, Any], clients: int, tasks: int) -> None:
    """Keep some of the clients, and of the tasks of every subtopology."""
    names = list(scenario["clients"])[:clients]
    # Every nth task, because all subtopologies should be left.
    left = list(scenario["tasks"])[:: -(-len(scenario["tasks"]) // tasks)]
    scenario["tasks"] = {task: scenario["tasks"][task] for task in left}
    scenario["clients"] = {name: scenario["clients"][name] for name in names}
    for client in scenario["clients"].values():
        client["lags"] = {task: lag for task, lag in client["lags"].items() if task in left}


def _place(rng: random.Random, scenario: dict[str, Any]) -> None:
    """Set a rack on every client and broker, and brokers for everything that the tasks read."""
    racks = [f"rack-{number}" for number in range(rng.choice([1, 2, 3, 3, 4, 6]))]
    brokers = {str(number): rng.choice(racks) for number in range(rng.choice([1, 3, 5, 12]))}
    for client in scenario["clients"].values():
        client["rack"] = rng.choice([*racks, "rack-of-no-broker"] if rng.random() < 0.1 else racks)
    scenario["brokers"], scenario["replicas"] = brokers, {}
    subtopologies = sorted({task.split("_")[0] for task in scenario["tasks"]})
    topics = {s: [f"in-{s}-{n}" for n in range(rng.choice([1, 1, 2, 4]))] for s in subtopologies}
    stores = {s: [f"app-{s}-{n}-changelog" for n in range(rng.choice([1, 1, 3]))] for s in topics}
    for subtopology in subtopologies:
        if rng.random() < 0.2:
            # A source topic that serves as a changelog, and a topic that two subtopologies read.
            stores[subtopology].append(topics[subtopology][0])
            topics[subtopology].append("everywhere")
    factor = rng.choice([1, 1, 2, 3])
    for task, value in scenario["tasks"].items():
        subtopology, partition = task.split("_")
        read = _read(rng, scenario, topics[subtopology], partition, factor)
        value["source_partitions"] = read
        if value["stateful"]:
            read = _read(rng, scenario, stores[subtopology], partition, factor)
            value["changelog_partitions"] = read


def _read(
    rng: random.Random,
    scenario: Mapping[str, Any],
    topics: Sequence[str],
    partition: str,
    factor: int,
) -> list[list[Any]]:
    """Set what a task reads of topics, some of which have fewer partitions than there are tasks."""
    read = [topic for place, topic in enumerate(topics) if not place or rng.random() < 0.8]
    brokers = sorted(map(int, scenario["brokers"]))
    for topic in read:
        replicas = rng.sample(brokers, min(factor, len(brokers)))
        scenario["replicas"].setdefault(f"{topic}-{partition}", replicas)
    rng.shuffle(read)
    return [[topic, int(partition)] for topic in read]


def _tag(rng: random.Random, scenario: dict[str, Any]) -> None:
    """Set clients' tags, which keep standbys from being exchanged."""
    scenario["config"]["rack.aware.assignment.tags"] = ["zone"]
    for client in scenario["clients"].values():
        client["tags"] = {"zone": rng.choice("xyz"), "cluster": rng.choice("xy")}


def _spoil(rng: random.Random, scenario: dict[str, Any]) -> None:
    """Remove a rack or a replica."""
    brokers, replicas = scenario["brokers"], scenario["replicas"]
    changelog = rng.random() < 0.5
    kind = [name for name in replicas if ("changelog" in name) == changelog] or list(replicas)
    partition = rng.choice(kind)
    match rng.randrange(7):
        case 0:
            rng.choice(list(scenario["clients"].values()))["rack"] = None
        case 1:
            del rng.choice(list(scenario["clients"].values()))["rack"]
        case 2:
            brokers[rng.choice(list(brokers))] = None
        case 3:
            del brokers[rng.choice(list(brokers))]
        case 4:
            replicas[partition] = []
        case 5:
            topic, _, number = partition.rpartition("-")
            replicas[f"{topic}-{int(number) + 1_000}"] = [77]
        case 6:
            topic, _, _ = partition.rpartition("-")
            for name in [one for one in replicas if one.rpartition("-")[0] == topic]:
                del replicas[name]
