"""Time our decisions on a Connect group's rounds, and those of Connect's own assignor."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table

from caughtup.agents.progress import Progress
from caughtup.bench.assign.pairs import Timing, figure, pairs_table
from caughtup.models.connect.assign_line import INCREMENTAL
from caughtup.models.connect.assignors import decide_incremental
from caughtup.models.connect.decision import (
    MAX_DELAY_MS,
    NO_MEMORY,
    ConnectDecision,
    Round,
    owned_after,
)
from caughtup.models.connect.work import written
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks

if TYPE_CHECKING:
    from caughtup.demo.apps.published_assignor import PublishedConnectLeader


class ConnectSize(NamedTuple):
    """A Connect group's size; ``tasks`` of each connector."""

    workers: int
    connectors: int
    tasks: int

    def __str__(self) -> str:
        return "x".join(map(str, self))


#: 2,000 tasks.
SIZE = ConnectSize(200, 100, 20)
Owned = Mapping[str, ConnectorsAndTasks]


def measure_connect(
    repeats: int, warm_up_seconds: float, size: ConnectSize | None = None
) -> Iterator[dict[str, object]]:
    """Measure both on each round of a group, each with its own decisions before.

    Only decisions are timed, without decoding subscriptions and encoding assignments. ``same``:
    whether all repeats were equal to the jar's. Raises CaughtupError when the jar cannot be run.
    """
    from caughtup.demo.apps.published_assignor import PublishedConnectLeader

    size = size or SIZE
    rounds: list[Round] = []
    owned: Owned = {f"connect-10.0.0.{n}:8083-{n:032x}": NOTHING for n in range(size.workers)}
    with (
        PublishedConnectLeader() as published,
        Progress().task("Deciding", len(_CHANGES) * repeats) as advance,
    ):
        for name, (change, time_ms) in _CHANGES.items():
            owned = change(owned)
            connectors = {f"connector-{n}": size.tasks for n in range(size.connectors)}
            rounds.append(Round(time_ms, connectors, owned))
            published.load({"rounds": [_round_json(one) for one in rounds]})
            _warm_up(published, warm_up_seconds)
            ours, theirs = [], []
            same = True
            for _ in range(repeats):
                timing, decision = _decide_timed(rounds)
                answer = published.decide()
                ours.append(timing)
                theirs.append(Timing(answer.milliseconds, answer.cpu_milliseconds))
                same = same and _comparable(decision) == answer.decision
                advance(1)
            yield figure(INCREMENTAL, str(size), name, ours, theirs, same)
            owned = {n: owned_after(owned[n], told) for n, told in decision.workers.items()}


def connect_table(figures: Sequence[dict[str, object]]) -> Table:
    """Return the figures as a table."""
    return pairs_table(figures, "workers × connectors × tasks of each")


def _as_it_is(owned: Owned) -> Owned:
    return owned


def _without_the_last(owned: Owned) -> Owned:
    return {name: owned[name] for name in list(owned)[:-1]}


def _with_another(owned: Owned, name: str) -> Owned:
    return {**owned, name: NOTHING}


#: What happens before each round, and when, in ms.
_CHANGES: dict[str, tuple[Callable[[Owned], Owned], int]] = {
    "starts": (_as_it_is, 1_000),
    "goes on": (_as_it_is, 2_000),
    "loses a worker": (_without_the_last, 3_000),
    "has waited for it": (_as_it_is, 3_000 + MAX_DELAY_MS),
    "gets a worker": (partial(_with_another, name="another"), 4_000 + MAX_DELAY_MS),
    "has given up work": (_as_it_is, 5_000 + MAX_DELAY_MS),
}


def _decide_timed(rounds: Sequence[Round]) -> tuple[Timing, ConnectDecision]:
    """Decide all rounds; time only the last one."""
    memory = NO_MEMORY
    for one in rounds[:-1]:
        _, memory = decide_incremental(one, memory)
    gc.freeze()
    start, start_of_thread = time.perf_counter_ns(), time.thread_time_ns()
    decision, _ = decide_incremental(rounds[-1], memory)
    end_of_thread, end = time.thread_time_ns(), time.perf_counter_ns()
    gc.unfreeze()
    return Timing((end - start) / 1e6, (end_of_thread - start_of_thread) / 1e6), decision


def _warm_up(published: PublishedConnectLeader, seconds: float) -> None:
    """Decide with the JVM without measuring, at least twice, so that it compiles the code."""
    end = time.monotonic() + seconds
    for _ in range(2):
        published.decide()
    while time.monotonic() < end:
        published.decide()


def _round_json(one: Round) -> dict[str, object]:
    return {
        "time_ms": one.time_ms,
        "connectors": one.connectors,
        "workers": {
            name: {"connectors": owned.connectors, "tasks": owned.tasks}
            for name, owned in one.workers.items()
        },
    }


def _comparable(decision: ConnectDecision) -> dict[str, object]:
    return {
        "delay_ms": decision.delay_ms,
        "workers": {
            name: {"assigned": written(one.assigned), "revoked": written(one.revoked)}
            for name, one in decision.workers.items()
        },
    }
