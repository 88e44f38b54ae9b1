"""What a service tells the page, small and changeable: all of it, and a view at a time."""

from __future__ import annotations

import time
from typing import Any

A, B = (f"00000000-0000-0000-0000-00000000000{n}" for n in "ab")


def now_ms() -> int:
    return int(time.time() * 1000)


def copy(process: str, role: str, lag: int | None = None, provenance: str = "reported") -> Any:
    known = {} if lag is None else {"lag": lag}
    return {"process": process, "role": role, "provenance": provenance, "as_of_ms": 0, **known}


def application(group: str = "orders", tasks: int = 2) -> dict[str, Any]:
    client = {"client_ids": [], "host": "/127.0.0.1", "capacity": 1, "leader": False}
    return {
        "group": group,
        "generation": 5,
        "as_of_ms": now_ms(),
        "clients": [
            {**client, "process": A, "name": "orders-a", "leader": True},
            {**client, "process": B, "name": "orders-b"},
        ],
        "tasks": [
            {"task": "0_0", "stateful": True, "copies": [copy(A, "active", None, "running")]},
            {
                "task": "0_1",
                "stateful": True,
                "copies": [
                    copy(A, "active", None, "running"),
                    {
                        **copy(B, "warmup", 800, "estimated"),
                        "verdict": "warming",
                        "eta_seconds": 79.0,
                        "why": "10.0/s nearer",
                    },
                ],
            },
            *(
                {"task": f"0_{n}", "stateful": True, "copies": [copy(B, "standby", n)]}
                for n in range(2, tasks)
            ),
        ],
        "acceptable_recovery_lag": 10,
        "configs": [
            {
                "name": "max.warmup.replicas",
                "values": "2 or more",
                "value": 2,
                "provenance": "learned",
                "generations": 4,
                "known": "learned from 4 generations",
                "would_tell": "a generation that warms up more copies at once",
            },
        ],
        "probing": {"scheduled": True, "due_ms": now_ms() + 600_000, "carried_by": "orders-a"}
        | {"worthwhile_now": False, "why": "1 of 1 warm-ups (0_1) caught up in 79 s"},
        "exact": {
            "assignor": "HighAvailabilityTaskAssignor",
            "result": "undetermined",
            "why": "open: max.warmup.replicas, 2 or more, until a generation that warms up more",
        },
        "recommendation": {
            "decision_id": "d",
            "generation": 5,
            "assignor": "high_availability",
            "decided_at_ms": 0,
            "movements": [
                {
                    "task": "0_1",
                    "from": A,
                    "to": B,
                    "kind": "warmup",
                    "reason": "orders-b is not caught up",
                    "lag": 800,
                }
            ],
            "probing_rebalance": {"needed": True, "reason": "1 warm-up has to be checked again"},
            "cost": {"copies": 9, "rebalances": 5, "seconds": 3_000.0, "estimated": False},
            "kafka_cost": {"copies": 96, "rebalances": 49, "seconds": 29_400.0, "estimated": True},
            "inputs": {"inferred": ["0 writes orders-counts-changelog"]},
        },
        "history": [{"generation": 4, "at_ms": 0, "result": "match", "movements": 2}],
    }


def state(**changes: Any) -> dict[str, Any]:
    """Return all that a service tells; ``views`` has what each view is told of it."""
    return {
        "schema": 2,
        "ready": True,
        "cluster": "cluster-1",
        "version": "0.1.0",
        "reader": {"records": 12, "lag": 0, "decode_errors": 0},
        "groups": [],
        "applications": [],
        "connect": [],
        "reassignments": [],
        "reassignment_counts": {},
        "throttles": [],
        "recent_reassignments": [],
        "streams": [],
        "feed": [],
        **changes,
    }


def reassignment(topic: str, verdict: str = "moving", **known: Any) -> dict[str, Any]:
    """Describe a partition that goes from broker 1 to broker 2, half of it copied."""
    sides = {"replicas": [2, 1], "adding": [2], "removing": [1], "isr": [1]}
    copies = [
        {"broker": 2, "role": "added", "in_sync": False, "log_end": 450, "share": 0.5},
        {"broker": 1, "role": "removed", "in_sync": True, "log_end": 900, "share": 1.0},
    ]
    figures = {
        "bytes_remaining": 45_000_000,
        "offsets_remaining": 450,
        "rate_bytes_per_second": 1_500_000.0,
        "eta_seconds": 30.0,
        "age_seconds": 700.0,
        "idle_seconds": 1.0,
    }
    return {
        "topic": topic,
        "partition": 0,
        "phase": "A",
        "leader": 1,
        "original": [1],
        "target": [2],
        **sides,
        **figures,
        "verdict": verdict,
        "copies": copies,
    } | known


def group(name: str, status: str | None = None, **known: Any) -> dict[str, Any]:
    told = {"group": name, "group_type": "classic", "members": 2, "partitions": 12, **known}
    return told if status is None else {**told, "status": status}


def stream(name: str, status: str = "running", **known: Any) -> dict[str, Any]:
    """Describe a stream on Spark that read 500 records in its last batch."""
    batch = {"batch": 12, "batch_seconds": 4.0, "rows": 500, "rows_per_second": 125.0}
    told = {"stream": name, "status": status, "heard_ms": now_ms() - 3_000, **batch}
    return {**told, "offsets_behind": 42, **known}


def partition(number: int, verdict: str = "ok", **known: Any) -> dict[str, Any]:
    told = {"topic": "letters", "partition": number, "verdict": verdict, "lag": 0}
    owner = {"member": f"m-{number}", "client_id": "reader-1", "host": "/10.0.0.1"}
    return {**told, **owner, "lag_seconds": 0.0, "committed": 10, "end_offset": 10, **known}


def event(text: str, kind: str = "rebalance", **known: Any) -> dict[str, Any]:
    return {"at_ms": now_ms() - 5_000, "kind": kind, "text": text, **known}


def recent(minutes: int = 60, **series: list[float | None]) -> dict[str, Any]:
    """Describe the last minutes, a sample each, with a rebalance in their middle."""
    now = now_ms()
    at_ms = [now - (minutes - n) * 60_000 for n in range(minutes)]
    told = series or {"lag": [float(n * n) for n in range(minutes)]}
    why = "orders-c joined"
    marks = [
        {"at_ms": at_ms[minutes // 2], "kind": "rebalance", "text": "generation 5", "why": why}
    ]
    return {"now_ms": now, "at_ms": at_ms, "series": told, "marks": marks}


def large(clients: int, tasks: int, subtopologies: int = 1) -> dict[str, Any]:
    """Describe an application whose pods have the names that pods have; each task has a standby."""
    told = application("fleet")
    names = [f"orders-streams-7d9f8b6c5-{n:05x}-StreamThread" for n in range(clients)]
    client = told["clients"][0] | {"leader": False}
    told["clients"] = [{**client, "process": f"p-{n}", "name": names[n]} for n in range(clients)]
    told["tasks"] = [
        {
            "task": f"{n % subtopologies}_{n // subtopologies}",
            "stateful": True,
            "copies": [
                {**copy(f"p-{n % clients}", "active", None, "running"), "as_of_ms": now_ms()},
                {**copy(f"p-{(n + 1) % clients}", "standby", n % 40), "as_of_ms": now_ms()},
                *([copy(f"p-{(n + 2) % clients}", "warmup", 9_300)] if n % 25 == 0 else []),
            ],
        }
        for n in range(tasks)
    ]
    told["recommendation"]["movements"] = [
        {"task": f"0_{n * 25}", "from": f"p-{n}", "to": f"p-{n + 2}", "kind": "warmup"}
        | {"reason": f"p-{n + 2} is not caught up", "lag": 9_000 + n}
        for n in range(tasks // 25 // subtopologies)
    ]
    return told
