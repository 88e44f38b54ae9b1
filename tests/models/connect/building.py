"""Rounds and work, written shortly: ``work("A A-0")`` is a connector and its first task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from caughtup.models.connect.assignors import decide_incremental
from caughtup.models.connect.decision import MAX_DELAY_MS, NO_MEMORY, ConnectDecision, Memory, Round
from caughtup.models.connect.work import Names, Work, written
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks


def work(names: str) -> ConnectorsAndTasks:
    return Names([]).read(names.split(), "owned")


def work_set(names: str) -> Work:
    return Work.of([work(names)])


def round_of(
    workers: Mapping[str, str], connectors: Mapping[str, int], time_ms: int = 0, **more: Any
) -> Round:
    return Round(
        time_ms, connectors, {name: work(owned) for name, owned in workers.items()}, **more
    )


def decided(
    rounds: Iterable[Round], max_delay_ms: int = MAX_DELAY_MS
) -> tuple[ConnectDecision, Memory]:
    """Decide rounds one after another; return the last decision and what is remembered after it."""
    decision, memory = None, NO_MEMORY
    for one in rounds:
        decision, memory = decide_incremental(one, memory, max_delay_ms)
    assert decision is not None
    return decision, memory


def assigned(decision: ConnectDecision) -> dict[str, str]:
    return {name: " ".join(written(one.assigned)) for name, one in decision.workers.items()}


def revoked(decision: ConnectDecision) -> dict[str, str]:
    return {name: " ".join(written(one.revoked)) for name, one in decision.workers.items()}


def reasons(because: Mapping[Any, str]) -> dict[str, str]:
    return {str(item): str(reason) for item, reason in because.items()}
