"""A forecast of a Connect leader's next rounds: what it assigns, and what it revokes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.models.connect.assignors import decide_incremental
from caughtup.models.connect.decision import Memory, Round, WorkerDecision, owned_after
from caughtup.models.connect.generation import ConnectGeneration, revoked
from caughtup.models.connect.watching.remembered import Hypothesis, Remembered
from caughtup.models.connect.work import Item
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

#: The most rounds that are played; a group that is not at rest then is taken as it is.
_MOST_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Imbalance:
    """How many more connectors, and tasks, the worker with most runs than that with fewest."""

    connectors: int
    tasks: int

    @property
    def is_uneven(self) -> bool:
        """Whether workers differ by more than the one that an uneven division leaves."""
        return self.connectors > 1 or self.tasks > 1


@dataclass(frozen=True, slots=True)
class Forecast:
    """The next round if its workers are the same, and the imbalance after all that follow.

    ``at_ms`` is when the round is due, None if none is. ``goes_to`` has the member that gets each
    unassigned item, and ``revokes`` what is revoked from each member. What depends on which
    hypothesis holds is left out, and ``after`` is None if it does.
    """

    at_ms: int | None
    goes_to: Mapping[Item, str]
    revokes: Mapping[str, ConnectorsAndTasks]
    after: Imbalance | None


def imbalance(owned: Mapping[str, ConnectorsAndTasks]) -> Imbalance:
    """Return how unevenly workers share the work; 0 without workers."""
    connectors = [len(one.connectors) for one in owned.values()] or [0]
    tasks = [len(one.tasks) for one in owned.values()] or [0]
    return Imbalance(max(connectors) - min(connectors), max(tasks) - min(tasks))


def forecast(
    generation: ConnectGeneration, connectors: Mapping[str, int], remembered: Remembered | None
) -> Forecast:
    """Return what follows after a generation, as far as all hypotheses agree."""
    owned = {name: worker.owns for name, worker in generation.workers.items()}
    at_ms = _due(generation)
    if remembered is None or not generation.workers:
        return Forecast(at_ms, {}, {}, imbalance(owned))
    played = [_play(owned, connectors, one, at_ms) for one in remembered.hypotheses]
    if not played:
        return Forecast(at_ms, {}, {}, None)
    first = played[0]
    goes_to = {
        item: name
        for item, name in first.goes_to.items()
        if all(one.goes_to.get(item) == name for one in played)
    }
    revokes = {
        name: work
        for name, work in first.revokes.items()
        if all(one.revokes.get(name) == work for one in played)
    }
    agreed = all(one.after == first.after for one in played)
    return Forecast(at_ms, goes_to, revokes, first.after if agreed else None)


def _due(generation: ConnectGeneration) -> int | None:
    """Return when the next round is due (ms): after a delay, at once, or None for not at all."""
    if generation.delay_ms:
        return generation.rejoin_at_ms
    if generation.error or revoked(generation):
        return max(generation.as_of_ms, 0)
    return None


def _play(
    owned: Mapping[str, ConnectorsAndTasks],
    connectors: Mapping[str, int],
    hypothesis: Hypothesis,
    at_ms: int | None,
) -> Forecast:
    """Return the forecast of one hypothesis, from playing rounds while another one is due."""
    goes_to: dict[Item, str] = {}
    revokes: dict[str, ConnectorsAndTasks] = {}
    memory: Memory = hypothesis.memory
    due_ms, now = at_ms, dict(owned)
    for number in range(_MOST_ROUNDS):
        if due_ms is None:
            break
        time_ms = max(due_ms, memory.scheduled_rebalance_ms if memory.delay_ms else 0)
        decision, memory = decide_incremental(
            Round(time_ms, connectors, now), memory, hypothesis.max_delay_ms
        )
        for name in sorted(decision.workers):
            _note(goes_to, name, decision.workers[name])
        if not number:
            revokes = {n: one.revoked for n, one in decision.workers.items() if one.revoked}
        now = {name: owned_after(work, decision.workers[name]) for name, work in now.items()}
        due_ms = decision.reassign_at_ms
        if due_ms is None and any(one.revoked for one in decision.workers.values()):
            due_ms = time_ms
    return Forecast(at_ms, goes_to, revokes, imbalance(now))


def _note(goes_to: dict[Item, str], name: str, decision: WorkerDecision) -> None:
    """Note what a worker starts; what the same round revokes from it goes to another one."""
    stopped = {*decision.revoked.connectors, *decision.revoked.tasks}
    items: tuple[Item, ...] = (*decision.assigned.connectors, *decision.assigned.tasks)
    for item in items:
        if item not in stopped:
            goes_to.setdefault(item, name)
