"""Groups for minimal_movement, and its decisions in few words."""

from __future__ import annotations

from typing import Any

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import Scenario
from tests.models.assignors.building import scenario
from tests.support.groups.streams import process

NOTHING = 100_000
FOUR = ("0_0", "0_1", "0_2", "0_3")


def recommended(*clients: dict[str, Any], **rest: Any) -> Scenario:
    return scenario(*clients, assignor="minimal_movement", **rest)


def kinds(decision: Decision) -> list[tuple[str, str, int]]:
    """List the movements: what, which task, to which client."""
    numbers = {one: place for place, one in enumerate(decision.clients, 1)}
    return [(m.kind.value, str(m.task), numbers[m.destination]) for m in decision.movements]


def given(decision: Decision, number: int) -> tuple[str, str, str]:
    """Return what a client is assigned: actives, standbys, and which of these are warm-ups."""
    one = decision.clients[process(number)]
    return tuple(" ".join(map(str, own)) for own in (one.active, one.standby, one.warmup))  # type: ignore[return-value]
