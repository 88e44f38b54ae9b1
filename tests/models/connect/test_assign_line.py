"""Stories as ``caughtup assign`` reads them, and what it prints of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from caughtup.models.connect.assign_line import (
    MOST_TASKS,
    decide_rounds,
    decisions_json,
    parse_rounds,
)
from caughtup.models.errors import ScenarioError

W1 = ["A", "B", "A-0", "A-1", "B-0"]
STORY: dict[str, Any] = {
    "name": "any",
    "assignor": "connect_incremental",
    "config": {"scheduled.rebalance.max.delay.ms": 300_000},
    "rounds": [
        {
            "time_ms": 0,
            "leader": "W1",
            "generation": 1,
            "connectors": {"A": 2, "B": 1},
            "workers": {"W1": {"owned": []}},
        },
        {
            "time_ms": 10,
            "leader": "W1",
            "generation": 2,
            "connectors": {"A": 2, "B": 1},
            "workers": {"W1": {"owned": W1}, "W2": {"owned": []}, "W3": {"owned": []}},
        },
    ],
}
NOTHING: dict[str, list[str]] = {"assigned": [], "revoked": [], "after": []}


def answer(story: dict[str, Any]) -> list[dict[str, Any]]:
    read = parse_rounds(story)
    rounds: list[dict[str, Any]] = decisions_json(read, decide_rounds(read))["rounds"]
    return rounds


def changed(round_: int | None = None, **fields: Any) -> dict[str, Any]:
    story = copy.deepcopy(STORY)
    (story if round_ is None else story["rounds"][round_]).update(fields)
    return story


def test_each_round_has_what_workers_start_and_stop_and_have_then():
    first, second = answer(STORY)
    assert first == {
        "delay_ms": 0,
        "workers": {"W1": {"assigned": W1, "revoked": [], "after": W1}},
    }
    kept = {"assigned": [], "revoked": ["A", "A-0", "A-1"], "after": ["B", "B-0"]}
    assert second == {"delay_ms": 0, "workers": {"W1": kept, "W2": NOTHING, "W3": NOTHING}}


def test_an_eager_group_is_dealt_all_work_anew():
    _, second = answer(changed(assignor="connect_eager"))
    after = {name: worker["after"] for name, worker in second["workers"].items()}
    assert after == {"W1": ["A", "A-1"], "W2": ["B", "B-0"], "W3": ["A-0"]}
    assert all(one["assigned"] == one["after"] for one in second["workers"].values())
    assert all(one["revoked"] == [] for one in second["workers"].values())


def test_a_leader_that_did_not_lead_the_last_round_remembers_nothing():
    waits = {**STORY["rounds"][1], "workers": {"W2": {"owned": []}, "W3": {"owned": []}}}
    story = changed(1, workers={"W1": {"owned": ["A", "A-0"]}, "W2": {"owned": ["B", "A-1"]}})
    story["rounds"][0]["workers"] = {"W1": {"owned": []}, "W2": {"owned": []}}
    gone = {**waits, "workers": {"W1": {"owned": ["A", "A-0"]}}}
    story["rounds"].append({**gone, "generation": 3})
    assert [one["delay_ms"] for one in answer(story)] == [0, 0, 300_000]
    story["rounds"].append({**waits, "generation": 4, "leader": "W3"})
    *_, last = answer(story)
    assert last["delay_ms"] == 0
    assert sorted(item for one in last["workers"].values() for item in one["assigned"]) == sorted(
        W1
    )


def test_a_round_that_failed_is_not_what_the_leader_goes_by():
    story = changed(1, workers={"W1": {"owned": []}, "W2": {"owned": []}})
    story["rounds"][0]["workers"] = {"W1": {"owned": []}, "W2": {"owned": []}, "W3": {"owned": []}}
    assert [one["delay_ms"] for one in answer(story)] == [0, 300_000]
    story["rounds"][1]["previous_generation_failed"] = True
    assert [one["delay_ms"] for one in answer(story)] == [0, 0]


def test_the_longest_delay_is_connects_default_unless_it_is_given():
    without = changed()
    del without["config"]
    assert parse_rounds(without).max_delay_ms == 300_000
    assert parse_rounds(changed(config={"scheduled.rebalance.max.delay.ms": 0})).max_delay_ms == 0


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (changed(name=3), "bad_field: name: is not a string"),
        (changed(assignor="high_availability"), "unsupported: assignor: 'high_availability'"),
        (changed(config={"delay": 3}), "unknown_config: config: 'delay' is not known"),
        (
            changed(config={"scheduled.rebalance.max.delay.ms": -1}),
            "bad_field: config.scheduled.rebalance.max.delay.ms: -1 is not from 0",
        ),
        (changed(rounds={}), "bad_field: rounds: is not an array"),
        (changed(rounds=[3]), "bad_field: rounds.0: is not an object"),
        (changed(1, time_ms=-1), "bad_field: rounds.1.time_ms: -1 is not from 0"),
        (changed(1, time_ms=1 << 60), "bad_field: rounds.1.time_ms"),
        (changed(1, generation="2"), "bad_field: rounds.1.generation: is not an integer"),
        (changed(1, leader="W9"), "bad_field: rounds.1.leader: 'W9' is not among the workers"),
        (changed(0, workers={}), "no_workers: rounds.0.workers: there is none"),
        (changed(0, workers={"W1": {}}), "missing_field: rounds.0.workers.W1.owned: is missing"),
        (changed(0, workers={"W1": {"owned": [3]}}), "bad_field: rounds.0.workers.W1.owned"),
        (changed(0, connectors={"A": -1}), "bad_field: rounds.0.connectors.A: -1 is not from 0"),
        (changed(0, connectors={"A": True}), "bad_field: rounds.0.connectors.A"),
        (
            changed(0, connectors={"A": MOST_TASKS, "B": 1}),
            "bad_field: rounds.0.connectors: more than 1,000,000 tasks",
        ),
        (
            changed(0, previous_generation_failed=1),
            "bad_field: rounds.0.previous_generation_failed: is not a boolean",
        ),
        (changed(0, connectors={"A": 2, "A-1": 1}), "ambiguous: rounds.1.workers.W1: 'A-1'"),
    ],
)
def test_a_story_that_contradicts_itself_is_refused_by_its_place(story, words):
    with pytest.raises(ScenarioError) as refused:
        parse_rounds(story)
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize("field", ["time_ms", "leader", "generation", "connectors", "workers"])
def test_a_round_without_a_field_is_refused(field):
    story = changed()
    del story["rounds"][1][field]
    with pytest.raises(ScenarioError, match=f"missing_field: rounds.1.{field}: is missing"):
        parse_rounds(story)
