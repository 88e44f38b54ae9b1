"""The public sticky assignor: what it does, and where it isn't what its documentation says."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings

from caughtup.models.assignment.decision import MovementKind
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.kafka.public_sticky.assignor import decide_public_sticky
from caughtup.models.assignors.registry import decide
from tests.models.assignors import decisions
from tests.models.assignors.building import client, described, task
from tests.models.assignors.decisions import Group, actives, assert_complete, standbys
from tests.support.groups.streams import process
from tests.support.sizes import daily

TASKS = ("0_0", "0_1", "0_2", "0_3")

decided = partial(decisions.decided, assignor="public_sticky")


def racked(*, standby_copies: int = 0, **config: int) -> dict[str, Any]:
    """Describe two clients that would save traffic by exchanging what they are dealt."""
    data = described(
        client() | {"rack": "a"},
        client() | {"rack": "b"},
        stateful=("0_0", "0_1"),
        standbys=standby_copies,
    )
    data["assignor"] = "public_sticky"
    data["config"]["rack.aware.assignment.strategy"] = "min_traffic"
    data["config"] |= {f"rack.aware.assignment.{name}": cost for name, cost in config.items()}
    data["brokers"] = {"0": "a", "1": "b"}
    data["replicas"] = {"in-0": [1], "in-1": [0], "log-0": [1], "log-1": [0]}
    for partition in (0, 1):
        data["tasks"][f"0_{partition}"] |= {
            "source_partitions": [["in", partition]],
            "changelog_partitions": [["log", partition]],
        }
    return data


def test_what_ran_stays_as_far_as_the_threads_shares_allow() -> None:
    decision = decided(client(active=TASKS), client(), client(capacity=2), stateful=TASKS)
    assert sorted(map(len, (own.active for own in decision.clients.values()))) == [1, 1, 2]
    assert not decision.probing_rebalance_needed
    kept = set(decision.clients[process(1)].active)
    assert {m.task for m in decision.movements} == {task(name) for name in TASKS} - kept


def test_a_share_is_rounded_down_so_that_the_first_task_alone_is_sure_to_stay() -> None:
    """KAFKA-20198 rounds it up after 4.3.1: then 2_0 would stay, too, and 3_0 would move."""
    tasks = ("1_0", "2_0", "3_0")
    decision = decided(client(active=tasks), client(), stateful=tasks)
    assert actives(decision) == ["1_0 3_0", "2_0"]


def test_of_clients_as_loaded_the_one_that_is_met_first_gets_a_task_whatever_its_threads() -> None:
    """The internal sticky assignor would prefer the one with more threads."""
    decision = decided(client(), client(capacity=2), stateful=TASKS)
    assert actives(decision) == ["0_0 0_3", "0_1 0_2"]


def test_without_room_a_task_gets_fewer_standbys() -> None:
    decision = decided(client(), client(), stateful=("0_0",), standbys=3)
    assert sorted(standbys(decision)) == ["", "0_0"]
    (cold, standby) = decision.movements
    assert (cold.kind, standby.kind) == (MovementKind.COLD, MovementKind.STANDBY)
    assert standby.reason == "one of 3 standbys is new here; the destination lags 100,000 offsets"


def test_the_order_in_which_tasks_get_standbys_places_them_but_no_active() -> None:
    data = described(client(), client(capacity=2), client(), stateful=TASKS, standbys=1)
    scenario = parse_scenario(data)
    decisions = [
        decide_public_sticky(scenario, standby_order=order)
        for order in permutations(scenario.stateful)
    ]
    assert decisions[0] == decide_public_sticky(scenario)
    assert len({tuple(standbys(decision)) for decision in decisions}) > 1
    assert len({tuple(actives(decision)) for decision in decisions}) == 1


def test_of_two_that_say_they_ran_a_task_the_one_counts_that_the_leader_meets_last() -> None:
    """Ids 1 and 17 share a bucket, in which clients stay as they arrived; id 2 comes after them."""
    data = described(client(active=("0_0",)), client(), client(active=("0_0",)), stateful=("0_0",))
    names = [str(UUID(int=number)) for number in (1, 2, 17)]
    data["clients"] = dict(zip(names, data["clients"].values(), strict=True))
    scenario = parse_scenario(data)
    first, second, last = (one.process_id for one in scenario.clients)
    arrivals = {(first, second, last): last, (last, second, first): first}
    for arrival, owner in arrivals.items():
        decision = decide_public_sticky(scenario, arrival=arrival)
        assert decision.clients[owner].active == (task("0_0"),)
    assert decide_public_sticky(scenario).clients[last].active == (task("0_0"),)


@pytest.mark.parametrize(
    ("costs", "dealt"),
    [
        ({}, ["0_0", "0_1"]),
        ({"traffic_cost": 2}, ["0_0", "0_1"]),
        ({"non_overlap_cost": 1}, ["0_0", "0_1"]),
        ({"traffic_cost": 2, "non_overlap_cost": 1}, ["0_1", "0_0"]),
    ],
)
def test_tasks_are_exchanged_between_racks_only_with_both_costs_configured(
    costs: dict[str, int], dealt: list[str]
) -> None:
    decision = decide(parse_scenario(racked(**costs)))
    assert actives(decision) == dealt
    exchanged = "tasks were exchanged to save traffic between racks; the destination got this one"
    alone = "no client ran it before; the destination is the least loaded"
    why = alone if dealt == ["0_0", "0_1"] else exchanged
    assert [m.reason for m in decision.movements] == [f"{why} and lags 100,000 offsets"] * 2


@pytest.mark.parametrize(
    ("replicas", "dealt"),
    [
        ({"in-0": [1, 9]}, ["0_1", "0_0"]),
        ({"in-0": [9]}, ["0_0", "0_1"]),
        ({"in-0": []}, ["0_0", "0_1"]),
        ({"log-0": [9]}, ["0_0", "0_1"]),
    ],
    ids=["one of two", "none", "no replicas", "the changelog's, without standbys"],
)
def test_one_replica_with_a_rack_is_enough_but_changelogs_count_always(
    replicas: dict[str, list[int]], dealt: list[str]
) -> None:
    data = racked(traffic_cost=2, non_overlap_cost=1)
    data["replicas"] |= replicas
    assert actives(decide(parse_scenario(data))) == dealt


def test_a_changelog_that_is_not_named_or_a_client_without_a_rack_keeps_all_as_dealt() -> None:
    unnamed = racked(traffic_cost=2, non_overlap_cost=1)
    del unnamed["tasks"]["0_1"]["changelog_partitions"]
    nowhere = racked(traffic_cost=2, non_overlap_cost=1)
    nowhere["clients"][str(UUID(int=2))]["rack"] = None
    for data in (unnamed, nowhere):
        assert actives(decide(parse_scenario(data))) == ["0_0", "0_1"]


def test_client_tags_make_no_difference() -> None:
    plain = racked(standby_copies=1, traffic_cost=2, non_overlap_cost=1)
    tagged = racked(standby_copies=1, traffic_cost=2, non_overlap_cost=1)
    tagged["config"]["rack.aware.assignment.tags"] = ["zone"]
    for one in tagged["clients"].values():
        one["tags"] = {"zone": "same"}
    assert decide(parse_scenario(tagged)) == decide(parse_scenario(plain))


@settings(max_examples=daily(20, 60), deadline=None, print_blob=True)
@given(decisions.groups)
def test_every_decision_is_complete_and_explained(group: Group) -> None:
    decision = decided(*group.clients, stateful=group.tasks, standbys=group.standbys)
    assert_complete(decision, group)
    new = {
        (process_id, str(t))
        for known, (process_id, c) in zip(group.clients, decision.clients.items(), strict=True)
        for t in (*c.active, *c.standby)
        if str(t) not in known["previous_active"]
    }
    assert {(m.destination, str(m.task)) for m in decision.movements} == new
