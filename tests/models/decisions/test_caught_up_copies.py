"""Caught up copies in few words are the same copies as one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from caughtup.models.assignment.scenario_lags import lag_of
from caughtup.models.decisions.caught_up_copies import CaughtUpCopies, caught_up_copies

TASKS = ("0_0", "0_1", "0_2")
PROCESSES = ("a", "b", "c")
ACCEPTABLE = 10


def scenario(rng: random.Random) -> dict[str, Any]:
    def lag() -> int:
        return rng.choice([-2, -3, 0, 5, 10, 11, 1_000])

    return {
        "config": {"acceptable.recovery.lag": ACCEPTABLE},
        "greatest_lags": {task: lag() for task in TASKS},
        "clients": {
            process: {"lags": {task: lag() for task in TASKS if rng.random() < 0.5}}
            for process in PROCESSES
        },
    }


def one_by_one(given: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (process, task)
        for process in PROCESSES
        for task in TASKS
        if 0 <= (lag_of(given, process, task) or 0) <= ACCEPTABLE
    }


def running(given: dict[str, Any]) -> set[tuple[str, str]]:
    return {(p, t) for p in PROCESSES for t in TASKS if lag_of(given, p, t) == -2}


def behind(given: dict[str, Any]) -> set[tuple[str, str]]:
    """Copies that say they lag by more than who has nothing, which no application says."""
    return {
        (process, task)
        for process in PROCESSES
        for task, lag in given["clients"][process]["lags"].items()
        if lag > ACCEPTABLE and 0 <= given["greatest_lags"][task] <= ACCEPTABLE
    }


@pytest.mark.parametrize("seed", range(200))
def test_of_any_scenario_they_are_the_same_as_one_by_one(seed: int) -> None:
    print("seed", seed)
    rng = random.Random(seed)
    first, second = scenario(rng), scenario(rng)
    pairs = [(process, task) for process in PROCESSES for task in TASKS]
    sets, given = [], []
    for one in (first, second):
        found = caught_up_copies(one)
        given.append(found)
        sets.append({pair for pair in pairs if found.has(*pair)})
        assert sets[-1] - running(one) - behind(one) == one_by_one(one)
    assert given[0].are_among(given[0])
    if given[0].are_among(given[1]):
        assert sets[0] <= sets[1]
    both = given[0].with_others(given[1])
    assert {pair for pair in pairs if both.has(*pair)} == sets[0] | sets[1]
    assert given[0].are_among(both)
    assert given[1].are_among(both)


def test_where_nobody_is_caught_up_there_are_none() -> None:
    assert caught_up_copies({"config": {}, "clients": {}}) == CaughtUpCopies()
