"""No recommendation drops copies or heaps up actives; what is honestly recommended never does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from caughtup.models.assignment.client_state import most_actives
from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.following.placement import RUNNING, ClientStates
from caughtup.models.assignors.following.recommendation import FollowedRecommendation
from caughtup.models.assignors.following.rules import find_objection
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.rounds import end_offsets, next_scenario
from tests.models.assignors.building import client, described
from tests.oracle.generated.racks import generate_racked
from tests.oracle.generated.scenarios import generate, generate_uneven
from tests.oracle.generated.tags import generate_tagged, generate_tagged_and_racked
from tests.support.groups.streams import process
from tests.support.sizes import daily

Generated = Callable[[int], dict[str, Any]]
FAMILIES = [generate, generate_uneven, generate_tagged, generate_racked, generate_tagged_and_racked]
FOUR = ("0_0", "0_1", "0_2", "0_3")
MOST_ROUNDS = 60


def recommended(scenario: Scenario, decision: Decision) -> FollowedRecommendation:
    """Recommend a decision, as found in a scenario."""
    found: dict[TaskId, set[ProcessId]] = {}
    for one in scenario.clients:
        for task in one.previous_active:
            found.setdefault(task, set()).add(one.process_id)
    return FollowedRecommendation(
        decision_id="d1",
        active={task: p for p, given in decision.clients.items() for task in given.active},
        standby={p: frozenset(given.standby) for p, given in decision.clients.items()},
        found={task: frozenset(had) for task, had in found.items()},
        config={},
        probing_needed=decision.probing_rebalance_needed,
        worthwhile_after_ms=None,
    )


def in_transit(scenario: Scenario, decision: Decision) -> Scenario:
    """Return the rebalance that follows at once: who is to let go of tasks has done so."""
    clients = []
    for one in scenario.clients:
        given = decision.clients[one.process_id]
        gone = one.previous_active.difference(given.active)
        closed = {task: 0 for task in gone if one.lags.get(task) == RUNNING}
        clients.append(
            replace(
                one,
                previous_active=one.previous_active - gone,
                previous_standby=frozenset(given.standby),
                lags={**one.lags, **closed},
            )
        )
    return replace(scenario, clients=tuple(clients))


def played(family: Generated, seed: int) -> Iterator[tuple[Scenario, Decision]]:
    """Play a group until it is at rest; by the next round some copies are caught up, or all."""
    scenario = parse_scenario({**family(seed), "assignor": "minimal_movement"})
    ends = end_offsets(scenario)
    rate = random.Random(seed).choice([None, None, 30_000, 300_000])
    for _ in range(MOST_ROUNDS):
        decision = decide(scenario)
        yield scenario, decision
        scenario = next_scenario(scenario, decision, ends, rate)
        if not decision.probing_rebalance_needed:
            return


def objection(scenario: Scenario, newest: FollowedRecommendation) -> str | None:
    found = find_objection(ClientStates(scenario), newest, 0, 1)
    return found and found.code


def assert_followed(family: Generated, seeds: range) -> None:
    for seed in seeds:
        for number, (scenario, decision) in enumerate(played(family, seed)):
            newest = recommended(scenario, decision)
            where = f"seed {seed}, round {number}"
            assert objection(scenario, newest) is None, where
            assert objection(in_transit(scenario, decision), newest) is None, f"{where}, in transit"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.__name__)
def test_what_caughtup_recommends_is_followed_on_all_of_its_way(family: Generated) -> None:
    assert_followed(family, range(daily(12, 30)))


@pytest.mark.thorough
@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.__name__)
def test_what_caughtup_recommends_is_followed_whatever_is_generated(family: Generated) -> None:
    assert_followed(family, range(30, 500))


def heaped(scenario: Scenario, newest: FollowedRecommendation) -> FollowedRecommendation:
    """Assign all actives to one process, those with state that it is caught up with."""
    states = ClientStates(scenario)
    first = scenario.clients[0].process_id
    active, standby = dict(newest.active), {p: set(t) for p, t in newest.standby.items()}
    for task, owner in newest.active.items():
        if owner != first and first in states.may_run(task):
            active[task] = first
            if task in standby[first]:
                standby[first].remove(task)
                standby[owner].add(task)
    return replace(newest, active=active, standby={p: frozenset(t) for p, t in standby.items()})


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.__name__)
def test_nobody_is_given_more_than_balance_allows(family: Generated) -> None:
    """Whoever forges it: what is followed gives no process more, and not a task more."""
    refused = 0
    for seed in range(60):
        generated = family(seed)
        for one in generated["clients"].values():
            # Everybody could run everything: nothing but the bound is in the way.
            one["lags"] = dict.fromkeys(one["lags"], 0)
        scenario = parse_scenario(generated)
        decision = decide(replace(scenario, assignor="minimal_movement"))
        forged = heaped(scenario, recommended(scenario, decision))
        first, threads = scenario.clients[0], sum(one.capacity for one in scenario.clients)
        given = [task for task, p in forged.active.items() if p == first.process_id]
        beyond = [
            kind
            for kind in (frozenset(scenario.stateful), frozenset(scenario.stateless))
            if len(kind.intersection(given)) > most_actives(first.capacity, len(kind), threads)
            and not kind.intersection(given) <= first.previous_active
        ]
        found = objection(scenario, forged)
        assert found == ("too_many_actives" if beyond else None), f"seed {seed}"
        refused += bool(beyond)
    assert refused > 15


def test_a_task_more_than_balance_allows_is_on_the_way_and_two_are_heaped() -> None:
    found = parse_scenario(
        described(
            client({"0_2": 0, "0_3": 0}, active=FOUR[:2]),
            client({"0_0": 0, "0_1": 0}, active=FOUR[2:]),
            stateful=FOUR,
        )
    )
    assert most_actives(1, 4, 2) == 3
    assert objection(found, given(found, FOUR[:3], FOUR[3:])) is None
    assert objection(found, given(found, FOUR, ())) == "too_many_actives"


def test_who_has_too_much_may_keep_it_and_is_given_nothing() -> None:
    tasks = (*FOUR, "0_4", "0_5")
    found = parse_scenario(
        described(client({"0_5": 0}, active=tasks[:5]), client(active=tasks[5:]), stateful=tasks)
    )
    assert objection(found, given(found, tasks[:5], tasks[5:])) is None
    assert objection(found, given(found, tasks, ())) == "too_many_actives"
    # Whoever is caught up has to take over what nobody runs.
    lost = parse_scenario(described(client({"0_5": 0}, active=tasks[:5]), client(), stateful=tasks))
    assert objection(lost, given(found, tasks, ())) is None


def test_tasks_without_state_are_bounded_on_their_own() -> None:
    tasks = tuple(f"1_{number}" for number in range(8))
    found = parse_scenario(
        described(client(active=tasks[:4]), client(active=tasks[4:]), stateless=tasks)
    )
    assert objection(found, given(found, tasks[:5], tasks[5:])) is None
    assert objection(found, given(found, tasks[:6], tasks[6:])) == "too_many_actives"


def given(found: Scenario, *actives: tuple[str, ...], **standby: tuple[str, ...]) -> Any:
    """Recommend actives to the clients in their order, and standbys by ``p1``, ``p2``, …"""
    return FollowedRecommendation(
        decision_id="d1",
        active={
            TaskId.parse(text): process(number)
            for number, tasks in enumerate(actives, 1)
            for text in tasks
        },
        standby={
            process(number): frozenset(map(TaskId.parse, standby.get(f"p{number}", ())))
            for number in range(1, len(actives) + 1)
        },
        found=recommended(found, decide(found)).found,
        config={},
        probing_needed=False,
        worthwhile_after_ms=None,
    )


def three(**lags: int) -> Scenario:
    """The first client runs the task, the others stand by for it with these lags."""
    return parse_scenario(
        described(
            client(active=("0_0",)),
            client({"0_0": lags["second"]}, standby=("0_0",)),
            client({"0_0": lags["third"]}),
            stateful=("0_0",),
            standbys=1,
        )
    )


def test_each_task_has_its_standbys_as_far_as_there_are_processes() -> None:
    found = three(second=0, third=9_000)
    assert objection(found, given(found, ("0_0",), (), (), p2=("0_0",))) is None
    assert objection(found, given(found, ("0_0",), (), ())) == "too_few_standbys"
    alone = parse_scenario(described(client(active=("0_0",)), stateful=("0_0",), standbys=2))
    assert objection(alone, given(alone, ("0_0",))) is None


def test_a_standby_that_is_caught_up_stays_until_another_one_is() -> None:
    found = three(second=0, third=9_000)
    anew = given(found, ("0_0",), (), (), p3=("0_0",))
    assert objection(found, anew) == "loses_standby"
    assert objection(found, given(found, ("0_0",), (), (), p2=("0_0",), p3=("0_0",))) is None
    assert objection(three(second=0, third=0), anew) is None
    # There is nothing to lose yet.
    assert objection(three(second=5_000, third=9_000), anew) is None


def test_who_runs_a_task_with_an_unknown_lag_has_it() -> None:
    unknown = described(
        {**client(active=("0_0",)), "lags": {"0_0": -3}}, client({"0_0": -3}), stateful=("0_0",)
    )
    found = parse_scenario(unknown)
    assert objection(found, given(found, ("0_0",), ())) is None
    assert objection(found, given(found, (), ("0_0",))) == "loses_standby"
