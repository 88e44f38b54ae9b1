"""The document's six cases as ``caughtup assign`` reads them."""

from __future__ import annotations

from typing import Any

from caughtup.demo.story.connect.cases import CASES, CONNECTORS, D_MS, SETTLED


def story(case: str) -> dict[str, Any]:
    """Write a case as ``caughtup assign`` reads it, each worker having what Kafka gave it."""
    steps, rounds = CASES[case], []
    owned: dict[str, str] = {}
    if steps[0].number >= "3":
        # The leader has seen who has what before anything happens.
        owned = SETTLED
        rounds.append(_round(0, "W1", dict(SETTLED), 1))
    for step in steps:
        has = {worker: owned.get(worker, "") for worker in step.workers}
        rounds.append(_round(step.time_ms, step.leader, has, len(rounds) + 1))
        owned = step.decided.after or {}
    return {
        "name": case,
        "assignor": "connect_incremental",
        "config": {"scheduled.rebalance.max.delay.ms": D_MS},
        "rounds": rounds,
    }


def _round(time_ms: int, leader: str, owned: dict[str, str], generation: int) -> dict[str, Any]:
    return {
        "time_ms": time_ms,
        "leader": leader,
        "generation": generation,
        "connectors": CONNECTORS,
        "workers": {name: {"owned": work.split()} for name, work in owned.items()},
    }
