"""The sticky assignor and its fallback: the published jar's answers, and what they come to."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from caughtup.models.assignment.decision import MovementKind
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.kafka.sticky import decide_fallback_prior, decide_sticky
from caughtup.models.assignors.registry import decide
from tests.models.assignors import decisions
from tests.models.assignors.building import client, described, task
from tests.models.assignors.decisions import Group, actives, assert_complete, standbys
from tests.support.groups.streams import process
from tests.support.sizes import daily

DATA = Path(__file__).parents[2] / "data"
EXAMPLES = [
    json.loads(line)
    for name in ("sticky.jsonl", "fallback_prior.jsonl")
    for line in (DATA / name).read_text().splitlines()
]
TASKS = ("0_0", "0_1", "0_2", "0_3")

decided = partial(decisions.decided, assignor="sticky")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["decision"]["name"])
def test_the_published_assignors_decision_is_reproduced(example: dict[str, Any]) -> None:
    decision = decide(parse_scenario(example["scenario"])).to_dict()
    for given_to in decision["clients"].values():
        assert given_to.pop("warmup") == []
    wanted = dict(example["decision"])
    wanted.pop("name")
    assert decision == wanted


def test_a_new_client_gets_the_share_that_the_old_one_gives_up() -> None:
    decision = decided(client(active=TASKS), client(), stateful=TASKS)
    assert sorted(map(len, (c.active for c in decision.clients.values()))) == [2, 2]
    assert not decision.probing_rebalance_needed
    kept, moved = decision.clients[process(1)].active, decision.clients[process(2)].active
    assert set(kept) | set(moved) == {task(text) for text in TASKS}
    assert {m.task for m in decision.movements} == set(moved)


def test_the_fallback_leaves_everything_where_it_ran_and_wants_another_rebalance() -> None:
    decision = decided(client(active=TASKS), client(), stateful=TASKS, assignor="fallback_prior")
    assert actives(decision) == ["0_0 0_1 0_2 0_3", ""]
    assert decision.probing_rebalance_needed
    assert decision.movements == ()


def test_of_empty_clients_the_first_gets_a_task_whatever_their_threads() -> None:
    decision = decided(client(), client(capacity=9), stateful=("0_0",))
    assert actives(decision) == ["0_0", ""]


def test_of_clients_as_loaded_the_one_with_more_threads_gets_a_task() -> None:
    decision = decided(client(), client(capacity=2), stateful=("0_0", "0_1", "0_2", "0_3"))
    assert actives(decision) == ["0_0", "0_1 0_2 0_3"]


def test_a_standby_goes_where_its_task_meets_another_one() -> None:
    """Client 2 has the most room for 0_1, but only 0_0, which shares a client with it already."""
    decision = decided(
        client(active=("0_0", "0_1"), capacity=2),
        client(capacity=2),
        client(active=("0_2",)),
        stateful=("0_0", "0_1", "0_2"),
        standbys=1,
    )
    assert actives(decision) == ["0_0 0_1", "", "0_2"]
    assert standbys(decision) == ["", "0_0 0_2", "0_1"]


def test_without_room_a_task_gets_fewer_standbys() -> None:
    decision = decided(client(), client(), stateful=("0_0",), standbys=3)
    assert standbys(decision) == ["", "0_0"]
    (cold, standby) = decision.movements
    assert (cold.kind, standby.kind) == (MovementKind.COLD, MovementKind.STANDBY)
    assert standby.reason == "one of 3 standbys is new here; the destination lags 100,000 offsets"


def test_a_task_that_moves_says_why_its_client_let_go_of_it() -> None:
    decision = decided(client(active=("0_0", "0_1")), client(), stateful=("0_0", "0_1"))
    (movement,) = decision.movements
    assert movement.source == process(1)
    assert movement.kind == MovementKind.COLD
    assert movement.reason == (
        "the source has its share of tasks; "
        "the destination is the least loaded and lags 100,000 offsets"
    )


@pytest.mark.parametrize("assignor", ["sticky", "fallback_prior"])
def test_only_the_sticky_assignor_exchanges_tasks_between_racks_and_says_so(assignor: str) -> None:
    data = described(client() | {"rack": "a"}, client() | {"rack": "b"}, stateful=("0_0", "0_1"))
    data["config"] |= {
        "rack.aware.assignment.strategy": "min_traffic",
        "rack.aware.assignment.traffic_cost": 2,
        "rack.aware.assignment.non_overlap_cost": 1,
    }
    data["brokers"] = {"0": "a", "1": "b"}
    data["replicas"] = {"in-0": [1], "in-1": [0]}
    for partition in (0, 1):
        data["tasks"][f"0_{partition}"]["source_partitions"] = [["in", partition]]
    decision = decide(parse_scenario({**data, "assignor": assignor}))
    exchanged = "tasks were exchanged to save traffic between racks; the destination got this one"
    alone = "no client ran it before; the destination is the least loaded"
    why = exchanged if assignor == "sticky" else alone
    assert actives(decision) == (["0_1", "0_0"] if assignor == "sticky" else ["0_0", "0_1"])
    assert [m.reason for m in decision.movements] == [f"{why} and lags 100,000 offsets"] * 2


def test_a_task_without_state_moves_without_a_lag() -> None:
    decision = decided(client(active=("1_0", "1_1")), client(), stateless=("1_0", "1_1"))
    (movement,) = decision.movements
    assert (movement.kind, movement.lag, movement.source_lag) == (
        MovementKind.STATELESS,
        None,
        None,
    )
    assert movement.reason == (
        "the source has its share of tasks; the destination is the least loaded"
    )


def test_as_many_tasks_as_do_not_overflow_are_decided() -> None:
    many = tuple(f"0_{partition}" for partition in range(46_341))
    assert len(decided(client(), stateless=many).clients[process(1)].active) == 46_341


@settings(max_examples=daily(20, 60), deadline=None, print_blob=True)
@given(decisions.groups)
def test_every_decision_is_complete_and_the_fallback_then_leaves_it_alone(group: Group) -> None:
    first = described(*group.clients, stateful=group.tasks, standbys=group.standbys)
    decision = decide_sticky(parse_scenario(first))
    assert_complete(decision, group)

    for known, given_to in zip(group.clients, decision.clients.values(), strict=True):
        known["previous_active"] = [str(t) for t in given_to.active]
        known["previous_standby"] = [str(t) for t in given_to.standby]
    second = described(*group.clients, stateful=group.tasks, standbys=group.standbys)
    again = decide_fallback_prior(parse_scenario(second))
    assert actives(again) == actives(decision)
