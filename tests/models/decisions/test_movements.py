"""What becomes of movements: planned, warming, promoted or dropped, each told once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from caughtup.models.decisions.inputs.gathering import RECOMMENDED
from caughtup.models.records.fields import json_values
from caughtup.models.records.movements import LEADER, TaskMovementRecord, read_movement
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import GROUP, START_MS, group_tombstone
from tests.support.groups.streams import (
    HANDED_OVER,
    HANDING_OVER,
    WARMING,
    Member,
    generation,
    process,
)
from tests.support.states import read, state_with_ends

A, B = str(process(1)), str(process(2))


def events(state: ClusterState, number: int, *members: Member) -> list[dict[str, Any]]:
    """Read and decide a generation, and give the events as a reader of the topic would."""
    read(state, generation(number, *members, at_ms=START_MS + number))
    for _ in state.decide(START_MS + 20_000):
        pass
    return [
        json_values(event)
        for event in state.applications.movement_events(START_MS + 20_000 + number)
    ]


def restore(state: ClusterState, told: list[dict[str, Any]]) -> None:
    """Have the state read back what was published."""
    for event in told:
        record = read_movement(GROUP.encode(), json.dumps(event).encode())
        assert isinstance(record, TaskMovementRecord)
        state.applications.movements.restore(record)


def steps(told: list[dict[str, Any]], plan: str) -> list[tuple[str, str]]:
    return [(event["event"], event["task"]) for event in told if event["plan"] == plan]


def test_a_warm_up_is_planned_and_warming_at_once_and_later_promoted() -> None:
    state = state_with_ends()
    first = events(state, 1, *WARMING)
    assert steps(first, LEADER) == [("planned", "0_1"), ("warming", "0_1")]
    planned = first[0]
    assert planned.pop("reason")
    assert planned.pop("decision_id")
    assert planned == {
        "schema": 1,
        "event": "planned",
        "plan": LEADER,
        "group": GROUP,
        "generation": 1,
        "at_ms": START_MS + 20_001,
        "task": "0_1",
        "from": A,
        "to": B,
        "kind": "warmup",
        "lag": 50_000,
    }
    assert steps(events(state, 2, *HANDING_OVER), LEADER) == []
    assert steps(events(state, 3, *HANDED_OVER), LEADER) == [("promoted", "0_1")]
    assert state.applications.movements.on_their_way(GROUP, LEADER) == []


def test_a_movement_to_a_process_that_goes_is_dropped_and_says_why() -> None:
    state = state_with_ends()
    events(state, 1, *WARMING)
    alone = replace(WARMING[0], probe_at_ms=None)
    dropped = [e for e in events(state, 2, alone) if e["plan"] == LEADER]
    assert [(e["event"], e["task"], e["why"]) for e in dropped] == [
        ("dropped", "0_1", "the process it was to move to is gone")
    ]


def test_a_generation_in_which_nothing_changes_tells_nothing() -> None:
    state = state_with_ends()
    events(state, 1, *WARMING)
    again = Member("b", 2, sums={"0_1": 10}, standby=("0_1",))
    assert steps(events(state, 2, WARMING[0], again), LEADER) == []


def test_the_leaders_plan_is_told_only_where_its_decision_is_known() -> None:
    told = events(state_with_ends(), 1, replace(WARMING[0], probe_at_ms=None), WARMING[1])
    assert {event["plan"] for event in told} == {RECOMMENDED}


def test_events_that_were_read_back_are_not_told_again() -> None:
    before = state_with_ends()
    told = events(before, 1, *WARMING)
    after = state_with_ends()
    restore(after, told)
    assert events(after, 1, *WARMING) == []
    assert after.applications.movements.on_their_way(
        GROUP, LEADER
    ) == before.applications.movements.on_their_way(GROUP, LEADER)


@pytest.mark.parametrize("known", range(4))
def test_what_was_lost_of_a_decisions_events_is_told_after_a_restart(known: int) -> None:
    told = events(state_with_ends(), 1, *WARMING)
    assert len(told) == 3
    after = state_with_ends()
    restore(after, told[:known])
    rest = events(after, 1, *WARMING)
    assert [(e["event"], e["plan"], e["task"]) for e in [*told[:known], *rest]] == [
        (e["event"], e["plan"], e["task"]) for e in told
    ]


def test_what_was_on_its_way_for_an_application_that_is_gone_is_dropped_once() -> None:
    state = state_with_ends()
    events(state, 1, *WARMING)
    read(state, group_tombstone())
    dropped = list(state.applications.movement_events(START_MS + 30_000))
    assert {(e.event, e.plan, e.why) for e in dropped} == {
        ("dropped", LEADER, "the application is gone"),
        ("dropped", RECOMMENDED, "the application is gone"),
    }
    assert list(state.applications.movement_events(START_MS + 30_001)) == []


def test_an_application_that_goes_and_comes_back_in_the_past_loses_no_movement() -> None:
    """The log of the groups is read from its start, after the events were read back."""
    told = events(state_with_ends(), 1, *WARMING)
    after = state_with_ends()
    restore(after, told)
    read(after, group_tombstone())
    assert events(after, 1, *WARMING) == []
