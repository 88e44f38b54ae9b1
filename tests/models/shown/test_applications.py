"""What people see of a Kafka Streams application: clients, tasks, its verdict, and why."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec

from caughtup.models.records.fields import changed, json_values
from caughtup.models.shown.applications import application_view, pending_movements
from caughtup.models.shown.lag import copy_lines
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import WARMING, Member, generation, process
from tests.support.states import NOW_MS, cluster_state, everything, list_ends, publish, read

A, B = str(process(1)), str(process(2))


def shown(state: ClusterState) -> dict[str, Any]:
    """Go through all the steps at once, and return the application as the page parses it."""
    steps = application_view(state, GROUP, state.applications[GROUP], NOW_MS)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found = json.loads(msgspec.json.encode(done.value))
            assert isinstance(found, dict)
            return found


def test_an_application_has_its_clients_tasks_and_next_probe() -> None:
    application = shown(everything())
    assert (application["group"], application["generation"]) == (GROUP, 7)
    assert (application["as_of_ms"], application["acceptable_recovery_lag"]) == (START_MS, 10_000)
    assert application["clients"][0] == {
        "process": A,
        "name": "a",
        "client_ids": ["a-StreamThread-1-consumer"],
        "host": "/127.0.0.1",
        "capacity": 1,
        "leader": True,
    }
    assert [client["leader"] for client in application["clients"]] == [True, False]
    assert application["probing"] == {"scheduled": True, "due_ms": START_MS, "carried_by": "a"}
    assert [(task["task"], task["stateful"]) for task in application["tasks"]] == [
        ("0_0", True),
        ("0_1", True),
    ]
    copies = [(one["process"], one["role"]) for one in application["tasks"][1]["copies"]]
    assert copies == [(A, "active"), (B, "warmup")]


def test_the_copies_of_a_task_are_the_lines_of_the_lag_table() -> None:
    state = everything()
    lines = [json_values(line) for line in copy_lines(state, GROUP)]
    assert [one for task in shown(state)["tasks"] for one in task["copies"]] == lines
    assert {"task": "0_1", "process": B, "role": "warmup", "lag": 50_000}.items() <= lines[
        -1
    ].items()


def test_an_application_has_its_verdict_and_the_reason_for_every_movement() -> None:
    application = shown(everything())
    assert application["exact"] == {
        "assignor": "HighAvailabilityTaskAssignor",
        "identical": True,
        "result": "match",
        "why": "",
    }
    recommendation = application["recommendation"]
    assert [m["kind"] for m in recommendation["movements"]] == ["warmup"]
    assert recommendation["movements"][0]["reason"]
    assert [(m["task"], m["to"], m["kind"]) for m in application["leader_movements"]] == [
        ("0_1", B, "warmup")
    ]
    assert "scenario" not in recommendation["inputs"]
    assert recommendation["inputs"]["changelogs"] == "settings"
    assert application["history"] == [
        {"generation": 7, "at_ms": START_MS, "result": "match", "movements": 1}
    ]


def test_an_application_that_is_not_decided_yet_has_no_verdict() -> None:
    state = cluster_state()
    read(state, generation(1, WARMING[1]))
    application = shown(state)
    assert application["probing"] == {"scheduled": False}
    assert application["tasks"] == []
    assert application.keys().isdisjoint({"exact", "recommendation"})
    assert [client["name"] for client in application["clients"]] == ["b"]


def test_an_application_of_which_nothing_can_be_read_has_no_recommendation() -> None:
    state = cluster_state()
    read(state, generation(1, Member("a", 1, user_data=b"?")))
    assert list(state.decide(START_MS)) == []
    application = shown(state)
    assert application["exact"]["result"] == "undetermined"
    assert (application["clients"], application["tasks"]) == ([], [])
    assert application.get("recommendation") is None


def test_clients_stand_in_the_order_of_their_names() -> None:
    state = cluster_state()
    read(state, generation(1, Member("m-10", 1), Member("a", 2), Member("m-9", 3)))
    application = shown(state)
    assert [client["name"] for client in application["clients"]] == ["a", "m-9", "m-10"]


def test_what_it_took_since_an_instance_joined_is_said_once_one_joined() -> None:
    state = everything()
    assert "change" not in shown(state)
    alone = Member("a", 1, ("0_0",), {"0_0": -2, "0_1": 50_000}, ("0_0", "0_1"))
    left_ms = START_MS + 1_000
    read(state, generation(8, alone, at_ms=left_ms), seen_ms=left_ms)
    list_ends(state, at_ms=left_ms + 1)
    publish(state, left_ms + 2)
    assert shown(state)["change"] == {
        "at_ms": left_ms,
        "text": "b left",
        "copies": 0,
        "rebalances": 1,
        "waits": 0,
        "waited_seconds": 0.0,
        "at_rest_ms": left_ms,
    }


def test_a_recommended_movement_is_pending_until_its_destination_runs_the_task() -> None:
    application = shown(everything())
    (movement,) = application["pending"]
    assert movement == application["recommendation"]["movements"][0]
    decided = everything().applications[GROUP].decided
    assert decided is not None
    assert decided.recommendation is not None
    at_once = changed(decided.recommendation.movements[0], kind="active", to=A)
    recommended = changed(decided.recommendation, movements=[at_once])
    copies = everything().task_rows(GROUP)
    assert pending_movements(replace(decided, recommendation=recommended), copies) == []
    elsewhere = changed(recommended, movements=[changed(at_once, to=B)])
    assert len(pending_movements(replace(decided, recommendation=elsewhere), copies)) == 1
