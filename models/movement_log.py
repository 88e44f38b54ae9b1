"""What becomes of planned movements: warming, promoted or dropped, each told once.

Two plans are followed for each application: what its leader decided, where that is known, and
what was recommended. An event is a value that follows from a decision and the generation it was
made in; taking the same decision again gives no event again, also after the events were read back
from where they were published.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from caughtup.models.deciding import DecidedGeneration
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.recommendation import movement_fields

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
        """Take an event as it was published."""
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
        """Take an event that was published before this process started, in their order.

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
        TaskId.parse(event["task"])
        ProcessId.parse(event["to"])
        self._plan(event["group"], plan).take(dict(event))

    def advance(self, decided: DecidedGeneration, at_ms: int) -> list[Event]:
        """Give what a decided generation means for the movements of its application.

        ``at_ms`` is the events' time. The leader's plan is only known where its decision is.
        """
        record = decided.record
        if record is None:
            return []
        events: list[Event] = []
        if decided.exact.decision is not None and decided.exact.plans:
            planned = [movement_fields(m) for m in decided.exact.decision.movements]
            events += self._advance(LEADER, decided, record, planned, at_ms)
        events += self._advance(RECOMMENDED, decided, record, record["movements"], at_ms)
        return events

    def close(self, applications: Container[str], at_ms: int) -> list[Event]:
        """Drop what is on its way for applications that are gone, and forget them.

        Not while the log of the groups is still read: applications go and come back in it.
        """
        events: list[Event] = []
        for group, plan in sorted(self._plans):
            if group not in applications:
                known = self._plans.pop((group, plan))
                why = {"event": "dropped", "at_ms": at_ms, "why": "the application is gone"}
                events += [{**known.open[key], **why} for key in sorted(known.open)]
        return events

    def on_their_way(self, group: str, plan: str) -> list[Mapping[str, Any]]:
        """Give the last event of each movement that is neither promoted nor dropped, sorted."""
        known = self._plans.get((group, plan))
        return [] if known is None else [known.open[key] for key in sorted(known.open)]

    def _plan(self, group: str, plan: str) -> _Plan:
        return self._plans.setdefault((group, plan), _Plan())

    def _advance(
        self,
        name: str,
        decided: DecidedGeneration,
        record: Mapping[str, Any],
        movements: list[dict[str, Any]],
        at_ms: int,
    ) -> Iterator[Event]:
        plan = self._plan(record["group"], name)
        if plan.decision_id != record["decision_id"]:
            plan.decision_id = record["decision_id"]
            plan.closed.clear()
        now = {MovementKey(m["task"], m["to"]): m for m in movements}
        held = _Held(decided)

        def event(what: str, movement: Mapping[str, Any], **more: str) -> Event:
            told = {
                "schema": SCHEMA,
                "event": what,
                "plan": name,
                "group": record["group"],
                "generation": record["generation"],
                "decision_id": record["decision_id"],
                "at_ms": at_ms,
                **{key: movement[key] for key in _MOVEMENT_FIELDS if key in movement},
                **more,
            }
            plan.take(told)
            return told

        for key in sorted(plan.open):
            if key in now and not held.has_arrived(key, now[key]["kind"]):
                continue
            was = plan.open[key]
            if held.has_arrived(key, was["kind"]) or held.holds(key):
                yield event("promoted", was)
            else:
                yield event("dropped", was, why=held.why_not(key))
        for key in sorted(now):
            movement = now[key]
            if key not in plan.open and key not in plan.closed:
                yield event("planned", movement)
                if held.has_arrived(key, movement["kind"]):
                    yield event("promoted", movement)
            known = plan.open.get(key)
            if (
                known is not None
                and known["event"] == "planned"
                and movement["kind"] == "warmup"
                and held.holds(key)
            ):
                yield event("warming", movement)


_MOVEMENT_FIELDS = ("task", "from", "to", "kind", "reason", "lag")


class _Held:
    """Who was given what by a generation's leader."""

    def __init__(self, decided: DecidedGeneration) -> None:
        self._clients = decided.generation.clients
        self._active = {p: client.active() for p, client in self._clients.items()}
        self._standby = {p: client.standby() for p, client in self._clients.items()}

    def has_arrived(self, key: MovementKey, kind: str) -> bool:
        """Tell whether the task is where the movement was to bring it."""
        task, process = TaskId.parse(key.task), ProcessId.parse(key.to)
        at = self._standby if kind == "standby" else self._active
        return task in at.get(process, ())

    def holds(self, key: MovementKey) -> bool:
        """Tell whether the destination has any copy of the task."""
        task, process = TaskId.parse(key.task), ProcessId.parse(key.to)
        return task in self._active.get(process, ()) or task in self._standby.get(process, ())

    def why_not(self, key: MovementKey) -> str:
        """Say why a movement was dropped."""
        if ProcessId.parse(key.to) not in self._clients:
            return "the process it was to move to is gone"
        return "it is no longer planned"
