"""Recommendations that a follower refuses, each with its reason."""

from __future__ import annotations

import json
from typing import Any

from tests.support.followers.streams_application import recommend


def spoiled(name: str, state: dict[str, Any]) -> tuple[Any, str]:
    """Return an invalid record for the application's present state, and the reason of its refusal."""
    record = recommend(state)
    first, second, _ = record["process_ids"]
    assignment = record["assignment"]
    if name == "other processes":
        other = "00000000-0000-0000-0000-000000000009"
        record["process_ids"] = [other, second, record["process_ids"][2]]
        assignment[other] = assignment.pop(first)
        return record, "other_processes"
    if name == "fewer processes":
        record["process_ids"].remove(first)
        assignment[second]["active"] += assignment.pop(first)["active"]
        # The process that ran the task may have had its standby.
        assignment[second]["standby"] = []
        return record, "other_processes"
    if name == "an unknown task":
        assignment[first]["active"].append("9_9")
        return record, "unknown_task"
    if name == "a missing task":
        next(g for g in assignment.values() if g["active"])["active"].pop()
        return record, "missing_task"
    if name == "an active twice":
        (task, *_) = next(g for g in assignment.values() if g["active"])["active"]
        assignment[first]["active"].append(task)
        return record, "malformed"
    if name == "other configs":
        record["inputs"]["scenario"]["config"]["num.standby.replicas"] = 1
        return record, "other_configs"
    if name == "another place":
        for client in record["inputs"]["scenario"]["clients"].values():
            client["previous_active"] = []
        for given in assignment.values():
            given["active"], given["standby"] = [], []
        idle = next(p for p, c in state["clients"].items() if not c["previous_active"])
        assignment[idle]["active"] = list(state["tasks"])
        return record, "moved_since"
    if name == "not caught up":
        idle = next(p for p, c in state["clients"].items() if not c["previous_active"])
        for given in assignment.values():
            given["active"], given["standby"] = [], []
        assignment[idle]["active"] = list(state["tasks"])
        return record, "not_caught_up"
    if name == "too many copies":
        for process, client in state["clients"].items():
            assignment[process]["active"] = client["previous_active"]
            others = set(state["tasks"]) - set(client["previous_active"])
            assignment[process]["standby"] = sorted(others)
        return record, "too_many_copies"
    if name == "not JSON":
        return b"\xff\x00{", "malformed"
    if name == "half a record":
        return json.dumps(record).encode()[:200], "malformed"
    if name == "nothing but depth":
        return b"[" * 100_000, "malformed"
    if name == "a number":
        return b"1e400", "malformed"
    assert name == "an oversized record"
    return json.dumps({**record, "padding": "x" * 900_000}).encode()[:-1], "malformed"


BAD = (
    "other processes",
    "fewer processes",
    "an unknown task",
    "a missing task",
    "an active twice",
    "other configs",
    "another place",
    "not caught up",
    "too many copies",
    "not JSON",
    "half a record",
    "nothing but depth",
    "a number",
    "an oversized record",
)
