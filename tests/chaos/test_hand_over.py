"""What is wrong with what was told is found: twice, too late, torn, never."""

from __future__ import annotations

import pytest

from tests.chaos.hand_over import Told, lived, silences
from tests.support.groups.emulated import Generation

GROUPS = frozenset({"g"})
MOVES = [{"task": "0_1", "to": "b"}]


def decision(generation, movements=()):
    return {"group": "g", "generation": generation, "movements": list(movements)}


def event(generation, kind="planned", plan="recommended"):
    return {
        "group": "g",
        "generation": generation,
        "decision_id": str(generation),
        "plan": plan,
        "event": kind,
        "task": "0_1",
        "to": "b",
    }


def told(decisions, events=()):
    at = {("g", one["generation"]): 10.0 * one["generation"] for one in decisions}
    return Told(decisions, list(events), at)


@pytest.mark.parametrize(
    "good",
    [
        told([decision(1), decision(3)]),
        told([decision(1, MOVES), decision(2, MOVES)], [event(1), event(2, "warming")]),
        told([decision(1, MOVES), decision(2)], [event(1), event(2, "dropped")]),
        told([decision(1, MOVES), decision(2, MOVES)], [event(1), event(1, "promoted")]),
    ],
    ids=["no movement", "one goes on", "one is dropped later", "one is over"],
)
def test_what_was_told_once_and_in_order_is_good(good: Told) -> None:
    assert good.wrong(GROUPS) == []


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (told([decision(1), decision(1)]), "recommended-assignments: g 1 was told 2 times"),
        (told([decision(2), decision(1)]), "g: generation 1 is decided after 2"),
        (told([decision(1, MOVES)]), "g: generation 1 moves 0_1 to b: no event says so"),
        (
            told([decision(1, MOVES)], [event(1, plan="leader")]),
            "g: generation 1 moves 0_1 to b: no event says so",
        ),
        (
            told([decision(1, MOVES), decision(2, MOVES)], [event(1), event(2, "dropped")]),
            "g: generation 2 moves 0_1 to b: no event says so",
        ),
        (
            told([decision(1, MOVES)], [event(1), event(1)]),
            "movements: recommended 1 planned 0_1 b was told 2 times",
        ),
    ],
    ids=["decided twice", "late", "torn", "the other plan's", "dropped before", "moved twice"],
)
def test_what_is_wrong_is_named(bad: Told, why: str) -> None:
    assert bad.wrong(GROUPS) == [why]


def test_generations_count_by_how_long_they_lived_and_groups_by_when_they_hear_again() -> None:
    began = [Generation("g", number, at) for number, at in ((1, 5.0), (2, 12.0), (3, 26.0))]
    ends = {("g", 1): 12.0, ("g", 2): 26.0}
    assert lived(began, ends, 7.5, 30.0) == {("g", 2)}
    assert lived(began, ends, 7.5, 40.0) == {("g", 2), ("g", 3)}
    heard = told([decision(1), decision(2), decision(3)])
    assert silences(heard, began, ends, 11.0) == {"g": 8.0}
    assert silences(heard, began, ends, 15.0) == {"g": 5.0}
    assert silences(heard, began, ends, 22.0) == {"g": 4.0}
    assert silences(told([decision(1)]), began, ends, 22.0) == {}
