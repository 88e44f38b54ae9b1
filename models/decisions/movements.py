"""What becomes of planned movements: warming, promoted or dropped, each told once.

Two plans are followed for each application: what its leader decided, where that is known, and
what was recommended. An event is a value that follows from a decision and the generation it was
made in; taking the same decision again gives no event again, also after the events were read back
from where they were published.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.records.fields import changed, or_absent
from caughtup.models.records.movements import (
    LEADER,
    RECOMMENDED,
    TASKS,
    Plan,
    TaskMovementRecord,
    TaskStep,
)
from caughtup.models.records.recommendations import RecommendationRecord, RecommendedMovement

_OPEN = ("planned", "warming")


class MovementKey(NamedTuple):
    """A movement by the task that moves and the process that it moves to, as their ids' text."""

    task: str
    to: str


@dataclass(slots=True)
class _Plan:
    """Where the movements of one plan are: those on their way, and this decision's that ended."""

    decision_id: str = ""
    open: dict[MovementKey, TaskMovementRecord] = field(default_factory=dict)
    closed: set[MovementKey] = field(default_factory=set)

    def apply(self, event: TaskMovementRecord) -> None:
        """Apply an event as it was published."""
        self.follow(event.decision_id)
        key = MovementKey(event.task, event.to)
        if event.event in _OPEN:
            self.open[key] = event
        else:
            self.open.pop(key, None)
            self.closed.add(key)

    def follow(self, decision_id: str) -> None:
        """Go on with a decision: of another one, no movement has ended yet."""
        if decision_id != self.decision_id:
            self.decision_id = decision_id
            self.closed.clear()


class MovementLog:
    """The movements of every application, by group and plan."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, Plan], _Plan] = {}

    def restore(self, event: TaskMovementRecord) -> None:
        """Apply an event that was published before this process started, in their order."""
        self._plan(event.group, event.plan).apply(event)

    def advance(self, decided: DecidedGeneration, at_ms: int) -> Iterator[TaskMovementRecord]:
        """Return what a decided generation means for the movements of its application.

        ``at_ms`` is the events' time. The leader's plan is only known where its decision is.
        Others may have their turn between two events.
        """
        recommended = decided.recommendation
        if recommended is None:
            return
        assigned = _AssignedTasks(decided)
        if decided.leader_movements is not None:
            yield from self._advance(LEADER, assigned, recommended, decided.leader_movements, at_ms)
        yield from self._advance(RECOMMENDED, assigned, recommended, recommended.movements, at_ms)

    def close(self, applications: Container[str], at_ms: int) -> Iterator[TaskMovementRecord]:
        """Drop what is on its way for applications that are gone, and forget them.

        Not while the log of the groups is still read: applications go and come back in it.
        """
        why = "the application is gone"
        for group, plan in sorted(self._plans):
            if group not in applications:
                known = self._plans[group, plan]
                for key in sorted(known.open):
                    yield changed(known.open.pop(key), event="dropped", at_ms=at_ms, why=why)
                del self._plans[group, plan]

    def on_their_way(self, group: str, plan: Plan) -> list[TaskMovementRecord]:
        """Return the last event of each movement that is neither promoted nor dropped, sorted."""
        known = self._plans.get((group, plan))
        return [] if known is None else [known.open[key] for key in sorted(known.open)]

    def _plan(self, group: str, plan: Plan) -> _Plan:
        return self._plans.setdefault((group, plan), _Plan())

    def _advance(
        self,
        name: Plan,
        assigned: _AssignedTasks,
        recommended: RecommendationRecord,
        movements: Iterable[RecommendedMovement],
        at_ms: int,
    ) -> Iterator[TaskMovementRecord]:
        plan = self._plan(recommended.group, name)
        plan.follow(recommended.decision_id)
        now = {MovementKey(m.task, m.to): m for m in movements}

        def event(
            step: TaskStep,
            movement: RecommendedMovement | TaskMovementRecord,
            why: str | None = None,
        ) -> TaskMovementRecord:
            new = TaskMovementRecord(
                schema=TASKS.schema,
                kind=movement.kind,
                event=step,
                group=recommended.group,
                generation=recommended.generation,
                decision_id=recommended.decision_id,
                at_ms=at_ms,
                task=movement.task,
                to=movement.to,
                reason=movement.reason,
                from_=movement.from_,
                plan=name,
                lag=movement.lag,
                why=or_absent(why),
            )
            plan.apply(new)
            return new

        for key in sorted(plan.open):
            if key in now and not assigned.has_arrived(key, now[key].kind):
                continue
            was = plan.open[key]
            if assigned.has_arrived(key, was.kind) or assigned.holds(key):
                yield event("promoted", was)
            else:
                yield event("dropped", was, assigned.why_not(key))
        for key in sorted(now):
            movement = now[key]
            if key not in plan.open and key not in plan.closed:
                yield event("planned", movement)
                if assigned.has_arrived(key, movement.kind):
                    yield event("promoted", movement)
            known = plan.open.get(key)
            if (
                known is not None
                and known.event == "planned"
                and movement.kind == "warmup"
                and assigned.holds(key)
            ):
                yield event("warming", movement)


class _AssignedTasks:
    """Who was given what by a generation's leader."""

    def __init__(self, decided: DecidedGeneration) -> None:
        self._active: set[tuple[str, str]] = set()
        self._standby: set[tuple[str, str]] = set()
        self._processes: set[str] = set()
        for process, client in decided.generation.clients.items():
            to = str(process)
            self._processes.add(to)
            self._active.update((str(task), to) for task in client.active())
            self._standby.update((str(task), to) for task in client.standby())

    def has_arrived(self, key: MovementKey, kind: str) -> bool:
        """Return whether the task is where the movement was to bring it."""
        return key in (self._standby if kind == "standby" else self._active)

    def holds(self, key: MovementKey) -> bool:
        """Return whether the destination has any copy of the task."""
        return key in self._active or key in self._standby

    def why_not(self, key: MovementKey) -> str:
        """Explain why a movement was dropped."""
        if key.to not in self._processes:
            return "the process it was to move to is gone"
        return "it is no longer planned"
