"""Caught up copies in few words are the same copies as one by one."""

from __future__ import annotations

import random

import pytest

from caughtup.models.assignment.compact import CompactScenario, CompactTask
from caughtup.models.assignment.scenario import Client
from caughtup.models.decisions.caught_up_copies import CaughtUpCopies, caught_up_copies
from caughtup.models.ids import CopyKey, ProcessId, TaskId

TASKS = tuple(TaskId(0, number) for number in range(3))
PROCESSES = tuple(ProcessId.of(number) for number in range(3))
ACCEPTABLE = 10


def scenario(rng: random.Random) -> CompactScenario:
    def lag() -> int:
        return rng.choice([-2, -3, 0, 5, 10, 11, 1_000])

    greatest = {task: lag() for task in TASKS}
    return CompactScenario(
        name=None,
        assignor="minimal_movement",
        config={"acceptable.recovery.lag": ACCEPTABLE},
        tasks=dict.fromkeys(TASKS, CompactTask(stateful=True)),
        clients={
            process: Client(
                process,
                1,
                frozenset(),
                frozenset(),
                {task: lag() for task in TASKS if rng.random() < 0.5},
            )
            for process in PROCESSES
        },
        greatest_lags=greatest,
    )


def one_by_one(given: CompactScenario) -> set[CopyKey]:
    return {
        CopyKey(str(process), task)
        for process in PROCESSES
        for task in TASKS
        if 0 <= (given.lag_of(process, task) or 0) <= ACCEPTABLE
    }


def running(given: CompactScenario) -> set[CopyKey]:
    return {CopyKey(str(p), t) for p in PROCESSES for t in TASKS if given.lag_of(p, t) == -2}


def behind(given: CompactScenario) -> set[CopyKey]:
    """Copies that say they lag by more than who has nothing, which no application says."""
    return {
        CopyKey(str(process), task)
        for process in PROCESSES
        for task, lag in given.clients[process].lags.items()
        if lag > ACCEPTABLE and 0 <= given.greatest_lags[task] <= ACCEPTABLE
    }


@pytest.mark.parametrize("seed", range(200))
def test_of_any_scenario_they_are_the_same_as_one_by_one(seed: int) -> None:
    print("seed", seed)
    rng = random.Random(seed)
    first, second = scenario(rng), scenario(rng)
    pairs = [CopyKey(str(process), task) for process in PROCESSES for task in TASKS]
    sets, given = [], []
    for one in (first, second):
        found = caught_up_copies(one)
        given.append(found)
        sets.append({pair for pair in pairs if found.has(pair)})
        assert sets[-1] - running(one) - behind(one) == one_by_one(one)
    assert given[0].are_among(given[0])
    if given[0].are_among(given[1]):
        assert sets[0] <= sets[1]
    both = given[0].with_others(given[1])
    assert {pair for pair in pairs if both.has(pair)} == sets[0] | sets[1]
    assert given[0].are_among(both)
    assert given[1].are_among(both)


def test_where_nobody_is_caught_up_there_are_none() -> None:
    nobody = CompactScenario(None, "minimal_movement", {}, {}, {})
    assert caught_up_copies(nobody) == CaughtUpCopies()
