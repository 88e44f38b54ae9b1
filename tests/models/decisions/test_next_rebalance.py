"""Caught up copies in few words are the same copies as one by one."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from caughtup.models.assignment.compact import CompactScenario, CompactTask
from caughtup.models.assignment.scenario import Client
from caughtup.models.decisions.next_rebalance import CaughtUpCopies, caught_up_copies, project
from caughtup.models.ids import CopyKey, ProcessId, TaskId
from caughtup.models.state.cluster import ClusterState
from caughtup.models.tasks.positions import TaskPosition
from tests.support.decisions import decided_generation, decided_state, recommendation_of
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import HANDING_OVER, WARMING, generation, process
from tests.support.states import cluster_state, known_ends, publish, read

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


A, B = str(process(1)), str(process(2))
ZERO, ONE = TaskId(0, 0), TaskId(0, 1)
LATER_MS = START_MS + 5_000


def projected(state: ClusterState) -> CompactScenario | None:
    known = decided_generation(state)
    return project(known.generation, known.inputs.scenario, state.positions.of(GROUP))


def report(
    state: ClusterState,
    process_id: str,
    lag: int | None,
    *,
    role: str = "standby",
    at_ms: int = LATER_MS,
) -> None:
    copy = CopyKey(process_id, TaskId(0, 1))
    state.positions.apply(GROUP, copy, TaskPosition(role, lag, {}, at_ms))


def test_everybody_comes_back_with_what_the_generation_gave_and_the_lags_of_then() -> None:
    scenario = projected(decided_state(*WARMING, number=1))
    assert scenario is not None
    assert scenario.clients[process(1)].previous_active == {ZERO, ONE}
    assert scenario.clients[process(2)].previous_standby == {ONE}
    assert [scenario.lag_of(process(2), task) for task in (ZERO, ONE)] == [50_000, 50_000]
    assert caught_up_copies(scenario) == CaughtUpCopies()


def test_what_was_reported_since_takes_the_place_of_the_lag_of_then() -> None:
    state = decided_state(*WARMING, number=1)
    report(state, B, 70)
    scenario = projected(state)
    assert scenario is not None
    assert scenario.clients[process(2)].lags[ONE] == 70
    assert caught_up_copies(scenario).copies == {CopyKey(B, ONE)}


def test_a_report_from_before_the_generation_counts_no_more() -> None:
    state = decided_state(*WARMING, number=1)
    report(state, B, 70, at_ms=START_MS - 1)
    scenario = projected(state)
    assert scenario is not None
    assert scenario.lag_of(process(2), ONE) == 50_000


def test_an_active_runs_unless_it_says_that_it_restores() -> None:
    state = decided_state(*WARMING, number=1)
    report(state, A, 9_000, role="restoring")
    scenario = projected(state)
    assert scenario is not None
    assert scenario.clients[process(1)].lags == {ZERO: -2, ONE: 9_000}
    report(state, A, None, role="active")
    again = projected(state)
    assert again is not None
    assert again.clients[process(1)].lags[ONE] == -2


def test_a_task_that_is_held_back_counts_as_its_owner_s() -> None:
    scenario = projected(decided_state(*HANDING_OVER))
    assert scenario is not None
    assert scenario.clients[process(1)].previous_active == {ZERO, ONE}
    assert scenario.clients[process(1)].lags == {ZERO: -2, ONE: -2}
    assert scenario.clients[process(2)].previous_standby == {ONE}
    assert scenario.clients[process(2)].lags[ONE] == 5_000


def test_of_a_task_that_its_scenario_lacks_nobody_can_tell() -> None:
    known = decided_generation(decided_state(*WARMING))
    scenario = known.inputs.scenario
    without = replace(scenario, tasks={ZERO: scenario.tasks[ZERO]})
    assert project(known.generation, without, {}) is None


def test_a_copy_that_catches_up_makes_a_new_recommendation_once() -> None:
    state = decided_state(*WARMING, number=1)
    assert publish(state, LATER_MS) == []
    report(state, B, 40_000)
    assert publish(state, LATER_MS) == []
    report(state, B, 8_000)
    (record,) = publish(state, LATER_MS)
    assert record["generation"] == 1
    assert record["inputs"]["projected"] is True
    assert [(m["task"], m["kind"]) for m in record["movements"]] == [("0_1", "active")]
    assert record["assignment"][B]["active"] == ["0_1"]
    assert record["leader"]["result"] == "match"
    report(state, B, 10, at_ms=LATER_MS + 1)
    assert publish(state, LATER_MS) == []
    assert state.applications[GROUP].rebalances == 1


def test_a_restart_makes_no_second_recommendation_of_the_same_copies() -> None:
    before = decided_state(*WARMING, number=1)
    report(before, B, 8_000)
    (record,) = publish(before, LATER_MS)
    after = cluster_state()
    after.applications.apply_published(GROUP, recommendation_of(record))
    known_ends(after)
    read(after, generation(1, *WARMING))
    report(after, B, 6_000)
    assert list(after.decide(LATER_MS)) == []


@pytest.mark.parametrize("lag", [-2, -3])
def test_neither_a_running_copy_nor_one_of_unknown_lag_is_caught_up_and_waiting(lag: int) -> None:
    client = Client(process(1), 1, frozenset(), frozenset(), {ZERO: lag})
    scenario = CompactScenario(None, "x", {}, {ZERO: CompactTask(True)}, {process(1): client})
    assert caught_up_copies(scenario) == CaughtUpCopies()
