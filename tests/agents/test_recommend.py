"""What goes out for a decision: an event for each movement, and a line for the log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from caughtup.agents.recommend import movement_events, summary
from tests.support.streams import (
    HANDED_OVER,
    START_MS,
    WARMING,
    Member,
    cluster_state,
    generation,
    known_ends,
    process,
    read,
)


def record_of(*members: Member) -> Mapping[str, Any]:
    state = cluster_state()
    known_ends(state)
    read(state, generation(7, *members))
    (record,) = state.decide(START_MS + 5)
    return record


def test_every_movement_is_an_event_of_its_decision() -> None:
    record = record_of(*WARMING)
    (event,) = movement_events(record)
    assert event.pop("reason")
    assert event == {
        "schema": 1,
        "event": "planned",
        "group": "orders",
        "generation": 7,
        "decision_id": record["decision_id"],
        "at_ms": START_MS + 5,
        "task": "0_1",
        "from": str(process(1)),
        "to": str(process(2)),
        "kind": "warmup",
        "lag": 50_000,
    }


def test_where_nothing_moves_there_is_no_event() -> None:
    state = cluster_state()
    settled = [
        replace(HANDED_OVER[0], owned=("0_0",)),
        replace(HANDED_OVER[1], owned=("0_1",), sums={"0_1": -2}),
    ]
    known_ends(state)
    read(state, generation(7, *settled))
    (record,) = state.decide(START_MS)
    assert list(movement_events(record)) == []


def test_what_is_published_is_json_without_loss() -> None:
    record = record_of(*WARMING)
    for value in (record, *movement_events(record)):
        assert msgspec.json.decode(msgspec.json.encode(value)) == json.loads(json.dumps(value))


def test_the_log_says_in_one_line_what_was_decided_and_why_the_leader_differs() -> None:
    assert summary(record_of(*WARMING)) == "orders generation 7: 1 movements, leader match"
    differing = record_of(replace(WARMING[0], probe_at_ms=None), WARMING[1])
    assert summary(differing) == (
        "orders generation 7: 1 movements, leader mismatch "
        "(a-StreamThread-1-consumer should ask for a probing rebalance, but asks for no rebalance)"
    )
