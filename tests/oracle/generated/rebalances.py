"""Whole rebalances made from a seed, by families; rebalance_parts.py says what is in them."""

from __future__ import annotations

import random

from tests.oracle.rebalance_parts import RUNNING, Json, rebalance_of_random_parts


def generate_rebalance(seed: int) -> Json:
    """Make a rebalance under HighAvailabilityTaskAssignor; the same one for the same seed."""
    return rebalance_of_random_parts(random.Random(f"rebalance {seed}"), f"rebalance seed {seed}")


def generate_sticky_rebalance(seed: int) -> Json:
    """Make a rebalance under the internal sticky assignor, or under FallbackPriorTaskAssignor."""
    rng = random.Random(f"sticky rebalance {seed}")
    rebalance = rebalance_of_random_parts(rng, f"sticky rebalance seed {seed}")
    rebalance["assignor"] = rng.choice(["sticky", "sticky", "fallback_prior"])
    return rebalance


def generate_failing_rebalance(seed: int) -> Json:
    """Make a rebalance in which end offsets or committed offsets can't be had."""
    rng = random.Random(f"failing rebalance {seed}")
    rebalance = rebalance_of_random_parts(rng, f"failing rebalance seed {seed}")
    rebalance["assignor"] = rng.choice(["high_availability", "high_availability", "sticky"])
    rebalance[rng.choice(["end_offsets", "end_offsets", "committed"])] = None
    return rebalance


def generate_tagged_rebalance(seed: int) -> Json:
    """Make a rebalance whose standbys are spread over the values of client tags."""
    rng = random.Random(f"tagged rebalance {seed}")
    rebalance = rebalance_of_random_parts(rng, f"tagged rebalance seed {seed}")
    keys = ["zone", "cluster", "shelf"][: rng.randint(1, 3)]
    rebalance["config"]["rack.aware.assignment.tags"] = keys
    rebalance["config"]["num.standby.replicas"] = rng.choice([1, 1, 2])
    incomplete = rng.random() < 0.1
    tags = {
        process: {key: f"{key}-{rng.randint(1, 3)}" for key in keys}
        for process in sorted({one["process"] for one in rebalance["members"].values()})
    }
    for member in rebalance["members"].values():
        member["tags"] = {
            key: value
            for key, value in tags[member["process"]].items()
            if not (incomplete and rng.random() < 0.2)
        }
    return rebalance


def generate_racked_rebalance(seed: int) -> Json:
    """Make a rebalance with racks; in one of four something has none, or two consumers disagree."""
    rng = random.Random(f"racked rebalance {seed}")
    rebalance = rebalance_of_random_parts(rng, f"racked rebalance seed {seed}", widest=6)
    config = rebalance["config"]
    config["rack.aware.assignment.strategy"] = rng.choice(["min_traffic", "balance_subtopology"])
    for cost in ("traffic_cost", "non_overlap_cost"):
        if rng.random() < 0.4:
            config[f"rack.aware.assignment.{cost}"] = rng.choice([0, 1, 7, 100])
    racks = [f"rack-{number}" for number in range(rng.choice([2, 3, 3, 4]))]
    brokers = {str(number): rng.choice(racks) for number in range(rng.choice([1, 3, 5]))}
    factor = min(len(brokers), rng.choice([1, 1, 2]))
    rebalance["brokers"] = brokers
    rebalance["replicas"] = {
        f"{topic}-{partition}": rng.sample([int(broker) for broker in brokers], factor)
        for topic, count in rebalance["partitions"].items()
        for partition in range(count)
    }
    members = rebalance["members"].values()
    places = {process: rng.choice(racks) for process in sorted({one["process"] for one in members})}
    for member in members:
        member["rack"] = places[member["process"]]
    if rng.random() < 0.25:
        what = rng.choice(["no rack", "another rack", "broker", "replicas"])
        if what == "broker":
            brokers[rng.choice(list(brokers))] = None  # type: ignore[assignment]
        elif what == "replicas":
            rebalance["replicas"][rng.choice(list(rebalance["replicas"]))] = []
        else:
            rng.choice(list(members))["rack"] = None if what == "no rack" else rng.choice(racks)
    return rebalance


def generate_public_sticky_rebalance(seed: int) -> Json:
    """Make a rebalance under the StickyTaskAssignor of the public API (KIP-924), without standbys.

    In which order it gives standbys depends on identity hash codes, so nobody can reproduce it.
    """
    rng = random.Random(f"public sticky rebalance {seed}")
    generators = [generate_rebalance, generate_racked_rebalance, generate_failing_rebalance]
    rebalance = rng.choice(generators)(seed)
    rebalance["config"]["num.standby.replicas"] = 0
    name = f"public sticky {rebalance['name']}"
    return rebalance | {"name": name, "assignor": "public_sticky"}


def follow_up(seed: int, rebalance: Json, members: Json) -> Json:
    """Make the rebalance that comes next, once members have taken what they were assigned.

    ``members`` are the assignments by member id, as the oracle tells them. Standbys have caught up
    or are behind, and now and then a process has left.
    """
    rng = random.Random(f"follow-up {seed}")
    after = {}
    for name, member in rebalance["members"].items():
        given = members[name]
        sums = {task: rng.choice([0, 55, 9_000, 1_000_000]) for task in given["standby"]}
        sums |= dict.fromkeys(given["active"], RUNNING)
        after[name] = member | {"owned": given["partitions"], "offset_sums": sums}
    processes = sorted({member["process"] for member in after.values()} - {rebalance["leader"]})
    left = rng.choice(processes) if processes and rng.random() < 0.25 else None
    return rebalance | {
        "name": f"after {rebalance['name']}",
        "members": {name: one for name, one in after.items() if one["process"] != left},
        "new_topics": [],
        "now_ms": rebalance["now_ms"] + 600_000,
    }
