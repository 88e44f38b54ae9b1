"""Rebalances for a follower, made from a seed: good recommendations, bad ones, and none."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from tests.oracle.generated.scenarios import LONG_MAX, generate

GROUP = "orders"
MAX_AGE_MS = 900_000
Record = dict[str, Any]
Spoil = Callable[[random.Random, dict[str, Any], Record], None]


def generate_question(seed: int) -> dict[str, Any]:
    """Make what a follower is told in a rebalance; the same for the same seed.

    ``record`` is the text of the newest record, None without one.
    """
    rng = random.Random(seed)
    scenario = _small(seed, rng)
    # Kafka's own assignor goes where ours never does.
    record = recommend(rng, scenario, rng.choice(["minimal_movement", "high_availability"]))
    kind = rng.choice(sorted(SPOILS))
    if kind != "none":
        SPOILS[kind](rng, scenario, record)
    text = None if kind == "none" else json.dumps(record)
    if kind == "broken":
        at = rng.randrange(len(text or ""))
        text = (text or "")[:at]
    return {
        "kind": kind,
        "scenario": scenario,
        "record": text,
        "age_ms": rng.choice([0, 1, MAX_AGE_MS, MAX_AGE_MS + 1]),
        "waited": rng.choice([0, 0, 1, 2, 3, 4]),
        "repeated": rng.choice([0, 0, 1, 5, 40]),
        "patience": [rng.choice([100, 5_000, 10_000_000]), MAX_AGE_MS, 3],
    }


def _small(seed: int, rng: random.Random) -> dict[str, Any]:
    scenario = generate(seed)
    if rng.random() < 0.5:
        # The likeliest state of an application: all of it settled, each task with an owner.
        clients = list(scenario["clients"].values())
        for client in clients:
            client["previous_active"] = []
        for task, info in scenario["tasks"].items():
            owner = rng.choice(clients)
            owner["previous_active"].append(task)
            for client in clients:
                if task in client["previous_standby"] and client is owner:
                    client["previous_standby"].remove(task)
            if info["stateful"]:
                owner["lags"][task] = -2
    return scenario


def recommend(
    rng: random.Random, scenario: dict[str, Any], assignor: str = "minimal_movement"
) -> Record:
    """Write a record with what an assignor would do, found as the scenario has it."""
    decision = decide(parse_scenario({**scenario, "assignor": assignor})).to_dict()
    decided_at = rng.randint(0, 1 << 42)
    probing: dict[str, Any] = {"needed": decision["probing_rebalance_needed"]}
    if rng.random() < 0.5:
        probing["worthwhile_at_ms"] = decided_at + rng.choice(
            [-(1 << 43), -5, 0, 200, 60_000, 10**9]
        )
    return {
        "schema": 1,
        "decision_id": f"{rng.getrandbits(128):032x}",
        "group": GROUP,
        "process_ids": list(scenario["clients"]),
        "decided_at_ms": decided_at,
        "assignment": decision["clients"],
        "probing_rebalance": probing,
        "inputs": {"scenario": copy.deepcopy(scenario)},
    }


def _one_moved(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    clients = list(scenario["clients"].values())
    task = rng.choice(list(scenario["tasks"]))
    for client in clients:
        if task in client["previous_active"]:
            client["previous_active"].remove(task)
    rng.choice(clients)["previous_active"].append(task)


def _in_transit(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    for client in scenario["clients"].values():
        client["previous_active"] = [t for t in client["previous_active"] if rng.random() < 0.7]


def _two_owners(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    for task in rng.sample(sorted(scenario["tasks"]), min(3, len(scenario["tasks"]))):
        client = rng.choice(list(scenario["clients"].values()))
        if task not in client["previous_active"]:
            client["previous_active"].append(task)


def _done(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    for process, client in scenario["clients"].items():
        given = record["assignment"][process]
        client["previous_active"] = list(given["active"])
        client["previous_standby"] = list(given["standby"])
        for task in given["active"]:
            if task in client["lags"]:
                client["lags"][task] = -2


def _lag_grown(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    for client in scenario["clients"].values():
        for task, lag in client["lags"].items():
            if lag >= 0 and rng.random() < 0.1:
                client["lags"][task] = rng.choice([0, min(lag + 1_000, LONG_MAX), -3])


def _other_process(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    process = rng.choice(record["process_ids"])
    if rng.random() < 0.5:
        other = f"00000000-0000-0000-0000-{rng.getrandbits(48):012x}"
        record["process_ids"][record["process_ids"].index(process)] = other
        record["assignment"][other] = record["assignment"].pop(process)
    elif len(scenario["clients"]) > 1:
        del scenario["clients"][process]


def _unknown_task(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    role = rng.choice(["active", "standby"])
    rng.choice(list(record["assignment"].values()))[role].append("77_7")


def _missing_task(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    given = rng.choice([g for g in record["assignment"].values() if g["active"]])
    given["active"].pop()


def _twice(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    role = rng.choice(["active", "standby"])
    task = rng.choice(list(scenario["tasks"]))
    rng.choice(list(record["assignment"].values()))[role].append(task)


def _other_config(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    config = record["inputs"]["scenario"]["config"]
    name = rng.choice(sorted(config))
    config[name] = rng.choice([config[name] + 1, float(config[name]), None, "1", [1], True])


def _no_config(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    del record["inputs"]["scenario"]["config"]
    if rng.random() < 0.5:
        scenario["config"]["num.standby.replicas"] = rng.randint(0, 2)


def _odd_field(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    odd = rng.choice([None, 1, -1, 1.0, "", "x", True, [], {}, [[]], {"0_0": 1}, 1 << 70])
    owner: Any = record
    while True:
        key = rng.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
        inner = owner[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.3:
            owner[key] = odd
            return
        owner = inner


def _heaped(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    """Assign one process all that it can run."""
    process = rng.choice(record["process_ids"])
    lags = scenario["clients"][process]["lags"]
    acceptable = scenario["config"]["acceptable.recovery.lag"]
    for task in scenario["tasks"]:
        if -2 <= lags.get(task, 0) <= acceptable:
            make_active(record, process, task)


def make_active(record: Record, process: str, task: str) -> None:
    """Assign a process a task, of which who had it keeps a standby if the process had one."""
    assignment = record["assignment"]
    (owner,) = (one for one, given in assignment.items() if task in given["active"])
    if owner == process:
        return
    assignment[owner]["active"].remove(task)
    assignment[process]["active"].append(task)
    if task in assignment[process]["standby"]:
        assignment[process]["standby"].remove(task)
        assignment[owner]["standby"].append(task)


def _standby_dropped(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    for given in record["assignment"].values():
        given["standby"] = [task for task in given["standby"] if rng.random() < 0.5]


def _standby_exchanged(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    """Have each standby built anew somewhere else."""
    assignment = record["assignment"]
    for process, given in assignment.items():
        for task in list(given["standby"]):
            free = [
                one
                for one, has in assignment.items()
                if one != process and task not in (*has["active"], *has["standby"])
            ]
            if free:
                given["standby"].remove(task)
                assignment[rng.choice(free)]["standby"].append(task)


def _fine(rng: random.Random, scenario: dict[str, Any], record: Record) -> None:
    """Leave it as it is."""


SPOILS: dict[str, Spoil] = {
    "none": _fine,
    "fine": _fine,
    "fine again": _fine,
    "heaped": _heaped,
    "standby dropped": _standby_dropped,
    "standby exchanged": _standby_exchanged,
    "broken": _fine,
    "one moved": _one_moved,
    "in transit": _in_transit,
    "two owners": _two_owners,
    "done": _done,
    "lag grown": _lag_grown,
    "other process": _other_process,
    "unknown task": _unknown_task,
    "missing task": _missing_task,
    "twice": _twice,
    "other config": _other_config,
    "no config": _no_config,
    "odd field": _odd_field,
}
