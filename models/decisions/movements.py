"""The events of planned movements: planned, warming, promoted or dropped, each published once.

Each application has two plans: its leader's decision, if known, and the recommendation. Events
follow from a decision and its generation; applying the same decision again gives no events, also
after a restart, when the published events have been read back.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
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
    """A movement's task and destination process, their ids as text."""

    task: str
    to: str


@dataclass(slots=True)
class _Plan:
    """The movements of one plan: the open ones, and those of this decision that ended."""

    decision_id: str = ""
    open: dict[MovementKey, TaskMovementRecord] = field(default_factory=dict)
    closed: set[MovementKey] = field(default_factory=set)

    def apply(self, event: TaskMovementRecord) -> None:
        """Apply an event."""
        self.begin(event.decision_id)
        key = MovementKey(event.task, event.to)
        if event.event in _OPEN:
            self.open[key] = event
        else:
            self.open.pop(key, None)
            self.closed.add(key)

    def begin(self, decision_id: str) -> None:
        """Begin a decision, of which no movement has ended yet, unless it is the present one."""
        if decision_id != self.decision_id:
            self.decision_id = decision_id
            self.closed.clear()


class MovementLog:
    """The movements of every application, by group and plan."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, Plan], _Plan] = {}

    def restore(self, event: TaskMovementRecord) -> None:
        """Apply an event that was published before this process started; call in order."""
        self._plan(event.group, event.plan).apply(event)

    def advance(self, decided: DecidedGeneration, at_ms: int) -> Iterator[TaskMovementRecord]:
        """Yield the events, at ``at_ms``, by which a decided generation changes the movements.

        The caller may do other work between two events.
        """
        recommended = decided.recommendation
        if recommended is None:
            return
        assigned = _AssignedTasks(decided)
        if decided.leader_movements is not None:
            yield from self._advance(LEADER, assigned, recommended, decided.leader_movements, at_ms)
        yield from self._advance(RECOMMENDED, assigned, recommended, recommended.movements, at_ms)

    def close(self, applications: Container[str], at_ms: int) -> Iterator[TaskMovementRecord]:
        """Drop the open movements of deleted applications, and yield the events.

        Don't call it before ``__consumer_offsets`` is read to its end, because applications may be
        deleted and created again in it.
        """
        why = "the application is gone"
        for group, plan in sorted(self._plans):
            if group not in applications:
                known = self._plans[group, plan]
                for key in sorted(known.open):
                    yield changed(known.open.pop(key), event="dropped", at_ms=at_ms, why=why)
                del self._plans[group, plan]

    def forget(self, of: Callable[[str], bool]) -> None:
        """Remove groups' movements without an event: another instance goes on with them."""
        for key in [key for key in self._plans if of(key[0])]:
            del self._plans[key]

    def on_their_way(self, group: str, plan: Plan) -> list[TaskMovementRecord]:
        """Return the last event of each open movement, sorted."""
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
        plan.begin(recommended.decision_id)
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
    """The tasks that a generation's leader assigned to each process."""

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
        """Return whether the destination has the task in the role that the movement leads to."""
        return key in (self._standby if kind == "standby" else self._active)

    def holds(self, key: MovementKey) -> bool:
        """Return whether the destination has any copy of the task."""
        return key in self._active or key in self._standby

    def why_not(self, key: MovementKey) -> str:
        """Return why a movement was dropped."""
        if key.to not in self._processes:
            return "the process it was to move to is gone"
        return "it is no longer planned"
