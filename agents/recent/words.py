"""Describe movements in sentences: one for a group and a moment, not one for each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from caughtup.models.recent.happenings import Happening
from caughtup.models.records.fields import or_none
from caughtup.models.records.movements import (
    LEADER,
    PartitionMovementRecord,
    TaskMovementRecord,
)

_STEPS = {
    "planned": "planned",
    "warming": "begun to warm up",
    "promoted": "carried out",
    "dropped": "given up",
}


def task_movements(events: Iterable[TaskMovementRecord]) -> list[Happening]:
    """Describe events of tasks: a line for each group and plan.

    A line has the reason of the first event, and the number of the others.
    """
    by_plan: dict[tuple[str, str], list[TaskMovementRecord]] = {}
    for event in events:
        by_plan.setdefault((event.group, event.plan), []).append(event)
    return [_of_plan(group, plan, found) for (group, plan), found in by_plan.items()]


def _of_plan(group: str, plan: str, events: list[TaskMovementRecord]) -> Happening:
    steps = Counter[str](event.event for event in events)
    said = ", ".join(f"{steps[step]} {words}" for step, words in _STEPS.items() if steps[step])
    whose = "the leader's" if plan == LEADER else "recommended"
    first, noun = events[0], "movement" if len(events) == 1 else "movements"
    why = f"{first.task}: {or_none(first.why) or first.reason}"
    more = f" (and {len(events) - 1} more)" if len(events) > 1 else ""
    at_ms = max(event.at_ms for event in events)
    return Happening(at_ms, "movement", f"{whose} {noun}: {said}", why + more, group)


def partition_movement(event: PartitionMovementRecord) -> Happening:
    """Describe a step of a reassignment, such as ``orders-3: brokers 1, 2 → 2, 4, begun``."""
    step = {
        "planned": "begun",
        "promoted": "completed",
        "dropped": "ended without reaching its target",
    }[event.event]
    route = " → ".join(", ".join(map(str, brokers)) for brokers in (event.from_, event.to))
    partition = str(event.topic_partition)
    return Happening(
        event.at_ms,
        "reassignment",
        f"{partition}: brokers {route}, {step}",
        or_none(event.why),
        partition=partition,
    )
