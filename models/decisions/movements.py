"""What becomes of planned movements: warming, promoted or dropped, each told once.

Two plans are followed for each application: what its leader decided, where that is known, and
what was recommended. An event is a value that follows from a decision and the generation it was
made in; taking the same decision again gives no event again, also after the events were read back
from where they were published.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from caughtup.models.decisions.generation import DecidedGeneration
from caughtup.models.decisions.recommendation import PlannedMovement, Recommendation
from caughtup.models.decisions.recommendation_fields import movement_fields
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId

SCHEMA = 1
LEADER, RECOMMENDED = "leader", "recommended"
_OPEN, _CLOSED = ("planned", "warming"), ("promoted", "dropped")

Event = dict[str, Any]


class MovementKey(NamedTuple):
    """A movement by the task that moves and the process that it moves to, as their ids' text."""

    task: str
    to: str


@dataclass(slots=True)
class _Plan:
    """Where the movements of one plan are: those on their way, and this decision's that ended."""

    decision_id: str = ""
    open: dict[MovementKey, Event] = field(default_factory=dict)
    closed: set[MovementKey] = field(default_factory=set)

    def take(self, event: Event) -> None:
        """Apply an event as it was published."""
        if event["decision_id"] != self.decision_id:
            self.decision_id = event["decision_id"]
            self.closed.clear()
        key = MovementKey(event["task"], event["to"])
        if event["event"] in _OPEN:
            self.open[key] = event
        else:
            self.open.pop(key, None)
            self.closed.add(key)


class MovementLog:
    """The movements of every application, by group and plan."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str], _Plan] = {}

    def restore(self, event: Mapping[str, Any]) -> None:
        """Apply an event that was published before this process started, in their order.

        Raises CaughtupError when it isn't one of ours.
        """
        texts = ("event", "group", "decision_id", "task", "to", "kind", "reason")
        plan = event.get("plan", RECOMMENDED)
        if (
            not all(isinstance(event.get(name), str) for name in texts)
            or event["event"] not in (*_OPEN, *_CLOSED)
            or plan not in (LEADER, RECOMMENDED)
        ):
            raise CaughtupError("bad_movement", "not an event of a movement")
        ids = {
            "task": str(TaskId.parse(event["task"])),
            "to": str(ProcessId.parse(event["to"])),
        }
        self._plan(event["group"], plan).take({**event, **ids})

    def advance(self, decided: DecidedGeneration, at_ms: int) -> Iterator[Event]:
        """Return what a decided generation means for the movements of its application.

        ``at_ms`` is the events' time. The leader's plan is only known where its decision is.
        Others may have their turn between two events.
        """
        recommended = decided.recommendation
        if recommended is None:
            return
        held = _Held(decided)
        if decided.leader_movements is not None:
            yield from self._advance(LEADER, held, recommended, decided.leader_movements, at_ms)
        yield from self._advance(RECOMMENDED, held, recommended, recommended.movements, at_ms)

    def close(self, applications: Container[str], at_ms: int) -> Iterator[Event]:
        """Drop what is on its way for applications that are gone, and forget them.

        Not while the log of the groups is still read: applications go and come back in it.
        """
        why = {"event": "dropped", "at_ms": at_ms, "why": "the application is gone"}
        for group, plan in sorted(self._plans):
            if group not in applications:
                known = self._plans[group, plan]
                for key in sorted(known.open):
                    yield {**known.open.pop(key), **why}
                del self._plans[group, plan]

    def on_their_way(self, group: str, plan: str) -> list[Mapping[str, Any]]:
        """Return the last event of each movement that is neither promoted nor dropped, sorted."""
        known = self._plans.get((group, plan))
        return [] if known is None else [known.open[key] for key in sorted(known.open)]

    def _plan(self, group: str, plan: str) -> _Plan:
        return self._plans.setdefault((group, plan), _Plan())

    def _advance(
        self,
        name: str,
        held: _Held,
        recommended: Recommendation,
        movements: Iterable[PlannedMovement],
        at_ms: int,
    ) -> Iterator[Event]:
        plan = self._plan(recommended.group, name)
        if plan.decision_id != recommended.decision_id:
            plan.decision_id = recommended.decision_id
            plan.closed.clear()
        now = {MovementKey(m.task, m.to): m for m in movements}

        def event(what: str, movement: Mapping[str, Any], **more: str) -> Event:
            told = {
                "schema": SCHEMA,
                "event": what,
                "plan": name,
                "group": recommended.group,
                "generation": recommended.generation,
                "decision_id": recommended.decision_id,
                "at_ms": at_ms,
                **{key: movement[key] for key in _MOVEMENT_FIELDS if key in movement},
                **more,
            }
            plan.take(told)
            return told

        for key in sorted(plan.open):
            if key in now and not held.has_arrived(key, now[key].kind):
                continue
            was = plan.open[key]
            if held.has_arrived(key, was["kind"]) or held.holds(key):
                yield event("promoted", was)
            else:
                yield event("dropped", was, why=held.why_not(key))
        for key in sorted(now):
            movement = now[key]
            if key not in plan.open and key not in plan.closed:
                yield event("planned", movement_fields(movement))
                if held.has_arrived(key, movement.kind):
                    yield event("promoted", movement_fields(movement))
            known = plan.open.get(key)
            if (
                known is not None
                and known["event"] == "planned"
                and movement.kind == "warmup"
                and held.holds(key)
            ):
                yield event("warming", movement_fields(movement))


_MOVEMENT_FIELDS = ("task", "from", "to", "kind", "reason", "lag")


class _Held:
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
        """Say why a movement was dropped."""
        if key.to not in self._processes:
            return "the process it was to move to is gone"
        return "it is no longer planned"
