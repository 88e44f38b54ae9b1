"""Without recommendations tasks get balanced all the same, without a cold hand-over."""

from __future__ import annotations

import itertools
import random
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.following.placement import (
    RUNNING,
    BalanceStep,
    ClientStates,
    balance_step,
)
from caughtup.models.ids import ProcessId, TaskId
from tests.models.assignors.building import client, described, task
from tests.support.groups.streams import process
from tests.support.sizes import daily

TASKS = tuple(f"0_{number}" for number in range(6))
FAR = 100_000


def step(scenario: dict[str, Any]) -> BalanceStep:
    return balance_step(ClientStates(parse_scenario(scenario)))


def test_who_has_none_warms_up_and_is_handed_tasks_when_caught_up() -> None:
    cold = step(described(client(active=TASKS), client(), stateful=TASKS))
    assert cold.waiting == 3
    assert set(cold.placement.active.values()) == {process(1)}
    assert cold.placement.standby[process(2)] == {task("0_0"), task("0_1")}
    warm = described(
        client(active=TASKS),
        client({"0_0": 3, "0_1": 100}, standby=("0_0", "0_1")),
        stateful=TASKS,
    )
    handed = step(warm)
    assert [t for t, p in handed.placement.active.items() if p == process(2)] == [
        task("0_0"),
        task("0_1"),
    ]
    assert handed.placement.standby[process(2)] == {task("0_2")}
    assert handed.waiting == 1


def test_what_is_nowhere_and_nobody_has_is_balanced_at_once() -> None:
    """The second gets both at first, since the first runs tasks without state."""
    one = step(
        described(
            client(active=("1_0", "1_1")),
            client(),
            stateful=("0_0", "0_1"),
            stateless=("1_0", "1_1"),
        )
    )
    assert one.placement.active[task("0_0")] == process(1)
    assert one.placement.active[task("0_1")] == process(2)
    assert one.waiting == 0


def test_a_standby_takes_over_and_who_had_it_stands_by() -> None:
    one = step(
        described(
            client(active=("0_0", "0_1")),
            client({"0_0": 0, "0_1": 0}, standby=("0_0", "0_1")),
            stateful=("0_0", "0_1"),
            standbys=1,
        )
    )
    assert one.placement.active == {task("0_0"): process(2), task("0_1"): process(1)}
    assert one.placement.standby == {process(1): {task("0_0")}, process(2): {task("0_1")}}
    assert one.waiting == 0


def test_missing_standbys_are_built_where_most_of_the_state_is() -> None:
    one = step(
        described(
            client(active=("0_0",)),
            client(active=("0_1",)),
            client({"0_0": 500}),
            stateful=("0_0", "0_1"),
            standbys=1,
        )
    )
    # Of the other task nobody has any: it goes to who has fewest copies.
    assert one.placement.standby == {
        process(1): {task("0_1")},
        process(2): set(),
        process(3): {task("0_0")},
    }


def test_a_task_that_warms_up_is_not_taken_by_one_that_joins() -> None:
    one = step(
        described(
            client(active=TASKS),
            # Of those that warm up there is least to restore.
            client({"0_0": 1_000, "0_1": 1_000}),
            client({"0_0": 0, "0_1": 0}, standby=("0_0", "0_1")),
            stateful=TASKS,
        )
    )
    assert [t for t, p in one.placement.active.items() if p == process(3)] == [
        task("0_0"),
        task("0_1"),
    ]
    assert one.placement.standby[process(2)] == {task("0_2"), task("0_3")}


def test_stateless_tasks_move_at_once_and_only_as_many_as_must() -> None:
    one = step(described(client(active=TASKS), client(), stateless=TASKS))
    moved = [t for t, p in one.placement.active.items() if p == process(2)]
    assert moved == [task("0_0"), task("0_1"), task("0_2")]
    assert one.waiting == 0


@st.composite
def applications(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an application with state, some of it at rest and some with lags and in transit."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    stateful = [f"0_{n}" for n in range(draw(st.integers(0, 20)))]
    stateless = [f"1_{n}" for n in range(draw(st.integers(0 if stateful else 1, 8)))]
    clients = [
        {
            "capacity": rng.choice([1, 1, 2, 5]),
            "previous_active": [],
            "previous_standby": [],
            "lags": {t: rng.choice([FAR, FAR, FAR, 50, 5_000]) for t in stateful},
        }
        for _ in range(draw(st.integers(1, 6)))
    ]
    for one in (*stateful, *stateless):
        if rng.random() < 0.9:
            owner = rng.choice(clients)
            owner["previous_active"].append(one)
            if one in owner["lags"]:
                owner["lags"][one] = RUNNING
    return {
        "assignor": "high_availability",
        "config": {
            "acceptable.recovery.lag": 100,
            "max.warmup.replicas": draw(st.integers(1, 3)),
            "num.standby.replicas": draw(st.integers(0, 2)),
        },
        "tasks": {t: {"stateful": True} for t in stateful}
        | {t: {"stateful": False} for t in stateless},
        "clients": {str(UUID(int=n)): one for n, one in enumerate(clients, 1)},
    }


def after(scenario: Scenario, one: BalanceStep) -> dict[str, Any]:
    """Return the next round: what was placed runs, and every copy is caught up."""
    config = scenario.configs
    clients: dict[str, Any] = {}
    for had in scenario.clients:
        process_id = had.process_id
        active = [str(t) for t, p in one.placement.active.items() if p == process_id]
        standby = sorted(str(t) for t in one.placement.standby[process_id])
        lags = {str(t): max(lag, 0) for t, lag in had.lags.items()}
        lags |= dict.fromkeys(standby, 0)
        lags |= {t: RUNNING for t in active if t in lags}
        clients[str(process_id)] = {
            "capacity": had.capacity,
            "previous_active": active,
            "previous_standby": standby,
            "lags": lags,
        }
    return {
        "assignor": "high_availability",
        "config": {
            "acceptable.recovery.lag": config.acceptable_recovery_lag,
            "max.warmup.replicas": config.max_warmup_replicas,
            "num.standby.replicas": config.num_standby_replicas,
        },
        "tasks": {str(t): {"stateful": True} for t in scenario.stateful}
        | {str(t): {"stateful": False} for t in scenario.stateless},
        "clients": clients,
    }


@settings(deadline=None, print_blob=True, max_examples=daily(60, 150))
@given(drawn=applications())
def test_every_step_is_valid_and_they_end_balanced(drawn: dict[str, Any]) -> None:
    scenario = parse_scenario(drawn)
    tasks = len(scenario.stateful) + len(scenario.stateless)
    # Each round hands over as many as warmed up in the last one, and the rest takes one.
    rounds = -(-len(scenario.stateful) // scenario.configs.max_warmup_replicas) + 2
    for _ in range(rounds):
        one = balance_step(ClientStates(scenario))
        check_valid(scenario, one, tasks)
        if one.waiting == 0:
            break
        scenario = parse_scenario(after(scenario, one))
    else:
        raise AssertionError(f"not balanced after {rounds} rounds")
    assert_balanced(scenario, one)
    settled = parse_scenario(after(scenario, one))
    again = balance_step(ClientStates(settled))
    assert again.waiting == 0
    assert again.placement == one.placement


def check_valid(scenario: Scenario, one: BalanceStep, tasks: int) -> None:
    placement, configs = one.placement, scenario.configs
    assert len(placement.active) == tasks
    assert placement.extra_copies(configs.num_standby_replicas) <= configs.max_warmup_replicas
    wanted = min(configs.num_standby_replicas, len(scenario.clients) - 1)
    states = ClientStates(scenario)
    for stateful in scenario.stateful:
        holders = [p for p, held in placement.standby.items() if stateful in held]
        assert placement.active[stateful] not in holders
        assert len(holders) >= wanted
        owners = states.owners[stateful]
        if placement.active[stateful] not in owners:
            # No cold hand-over, but where it was nowhere and nobody is caught up.
            assert placement.active[stateful] in states.may_run(stateful)


def assert_balanced(scenario: Scenario, one: BalanceStep) -> None:
    """No process would gain on another from a task of either kind."""
    threads = {c.process_id: c.capacity for c in scenario.clients}

    def count(process_id: ProcessId, among: tuple[TaskId, ...]) -> int:
        return sum(one.placement.active[t] == process_id for t in among)

    every = (*scenario.stateful, *scenario.stateless)
    for source, other in itertools.permutations(threads, 2):
        stateful = count(source, scenario.stateful), count(other, scenario.stateful)
        assert stateful[0] * threads[other] <= (stateful[1] + 1) * threads[source]
        if count(source, scenario.stateless):
            both = count(source, every), count(other, every)
            assert both[0] * threads[other] <= (both[1] + 1) * threads[source]
