"""The same decisions as the published StickyTaskAssignor of the public API (KIP-924).

It gives standbys in an order that identity hash codes make up in each run, so the oracle tells
which one it was, and our model decides in that order.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from caughtup.models.assignment.decision import Decision, MovementKind
from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.java import hash_map
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.assignors.kafka import stickiness
from caughtup.models.assignors.kafka.client_loads import ClientLoads
from caughtup.models.assignors.kafka.public_sticky import racks as public_sticky_racks
from caughtup.models.assignors.kafka.public_sticky.assignor import decide_public_sticky
from caughtup.models.assignors.kafka.public_sticky.racks import (
    PublicRackOptimiser,
    find_public_racks,
)
from caughtup.models.assignors.kafka.racks.min_cost_flow import FlowNetwork
from caughtup.models.assignors.kafka.racks.rack_aware import Costs
from caughtup.models.assignors.kafka.stickiness import StickyHistory, TaskPairs
from caughtup.models.ids import ProcessId, TaskId
from tests.oracle.assignors.done_wrong import Wrong, all_but_as_filled, as_filled, assert_noticed
from tests.oracle.comparison import assert_same_decisions
from tests.oracle.conftest import seeds_of_a_family
from tests.oracle.generated.public_sticky import (
    generate_public_sticky,
    generate_public_sticky_racked,
    generate_public_sticky_tagged,
)
from tests.oracle.generated.racks import COSTS
from tests.oracle.generated.sticky import join
from tests.support.oracles import Oracle

STANDBYS = "num.standby.replicas"


def hold_alike(oracle: Oracle, scenarios: Iterable[dict[str, Any]]) -> int:
    """Fail with the first scenario that is decided otherwise here; count them."""
    return assert_same_decisions(
        oracle,
        scenarios,
        lambda scenario, theirs: decide_in_its_order(scenario, theirs["standby_order"]),
    )


def decide_in_its_order(scenario: dict[str, Any], standby_order: list[str]) -> dict[str, Any]:
    decision = decide_public_sticky(
        parse_scenario(scenario),
        arrival=[ProcessId.parse(name) for name in scenario["clients"]],
        standby_order=[TaskId.parse(task) for task in standby_order],
    ).to_dict()
    assert not any(client.pop("warmup") for client in decision["clients"].values())
    return decision


def placed(theirs: dict[str, Any]) -> dict[str, Any]:
    return {key: theirs[key] for key in ("probing_rebalance_needed", "clients")}


@pytest.mark.family("public_sticky")
@seeds_of_a_family(one_of=3)
def test_generated_scenarios_are_decided_as_the_published_assignor_decides_them(
    assignor_oracle: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(hold_alike(assignor_oracle, map(generate_public_sticky, seeds)))


@pytest.mark.family("public_sticky, racks")
@seeds_of_a_family(one_of=3)
def test_racks_mean_what_they_mean_to_the_published_assignor(
    assignor_oracle: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(hold_alike(assignor_oracle, map(generate_public_sticky_racked, seeds)))


@pytest.mark.family("public_sticky, tags and racks")
@seeds_of_a_family(one_of=3)
def test_tags_mean_as_little_as_they_do_to_the_published_assignor(
    assignor_oracle: Oracle, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(hold_alike(assignor_oracle, map(generate_public_sticky_tagged, seeds)))


def test_a_large_group_that_grows_is_decided_as_the_published_assignor_decides_it(
    assignor_oracle: Oracle,
) -> None:
    rng = random.Random(12)
    tasks = [f"{subtopology}_{p}" for subtopology in range(6) for p in range(100)]
    scenario = generate_public_sticky(0) | {
        "tasks": {task: {"stateful": True} for task in tasks},
        "clients": {},
    }
    scenario["config"][STANDBYS] = 1
    for joining in (40, 1):
        join(scenario, joining, rng)
        assert hold_alike(assignor_oracle, [scenario]) == 1
        for process, given in assignor_oracle.ask(scenario)["clients"].items():
            scenario["clients"][process]["previous_active"] = given["active"]
            scenario["clients"][process]["previous_standby"] = given["standby"]


def test_kafka_itself_places_the_same_standbys_otherwise_each_time(
    assignor_oracle: Oracle,
) -> None:
    """Which is why our decision needs to be told the order; actives are the same each time."""
    scenario = next(
        scenario
        for scenario in map(generate_public_sticky, range(1_000))
        if scenario["config"][STANDBYS] == 1
        and len(scenario["clients"]) >= 5
        and sum(task["stateful"] for task in scenario["tasks"].values()) >= 20
    )
    answers = [assignor_oracle.ask(scenario) for _ in range(20)]
    for answer in answers:
        assert decide_in_its_order(scenario, answer["standby_order"]) == placed(answer)
    clients = [answer["clients"] for answer in answers]
    assert len({json.dumps(one) for one in clients}) > 1
    actives = [{name: own["active"] for name, own in one.items()} for one in clients]
    assert all(one == actives[0] for one in actives)


@pytest.mark.heavy
def test_the_generators_reach_what_they_have_to_reach() -> None:
    """Or else agreement over their scenarios would prove little."""
    seen: Counter[object] = Counter()
    for seed in range(300):
        for generate in (generate_public_sticky_racked, generate_public_sticky_tagged):
            scenario = generate(seed)
            config = scenario["config"]
            seen["strategy", config["rack.aware.assignment.strategy"]] += 1
            seen["standbys", config[STANDBYS]] += 1
            known = parse_scenario(scenario)
            configured = all(config.get(cost) is not None for cost in COSTS)
            seen["both costs", configured] += 1
            found = find_public_racks(known)
            by_public_rules = found is not None and found.actives is not None
            seen["laxer than inside of Kafka"] += known.racks is None and by_public_rules
            seen["stricter than inside of Kafka"] += configured and (
                known.racks is not None and not by_public_rules
            )
            seen["standbys only"] += found is not None and (
                found.actives is None and found.standbys is not None
            )
            moved = decide_public_sticky(known).movements
            seen["exchanged"] += any("exchanged" in movement.reason for movement in moved)
        scenario = generate_public_sticky(seed)
        clients = list(scenario["clients"])
        seen["clients in another order"] += clients != sorted(clients)
        known = parse_scenario(scenario)
        seen.update(movement.kind for movement in decide_public_sticky(known).movements)
    wanted = {("strategy", "min_traffic"), ("strategy", "balance_subtopology")}
    wanted |= {("both costs", True), ("both costs", False), *(("standbys", n) for n in range(4))}
    assert (
        wanted
        | {MovementKind.ACTIVE, MovementKind.COLD, MovementKind.STANDBY, MovementKind.STATELESS}
        <= seen.keys()
    )
    rare = {what: count for what, count in seen.items() if count < 5}
    assert not rare


@pytest.fixture(scope="module")
def decided() -> list[tuple[Scenario, Decision]]:
    scenarios = [
        parse_scenario(generate(seed))
        for generate, count in (
            (generate_public_sticky, 500),
            (generate_public_sticky_racked, 150),
            (generate_public_sticky_tagged, 150),
        )
        for seed in range(count)
    ]
    return [(scenario, decide_public_sticky(scenario)) for scenario in scenarios]


@pytest.mark.parametrize(
    "wrong",
    [
        (TaskPairs, "has_new", lambda self, place, companions: True),
        (ClientLoads, "should_give_way", lambda self, place: False),
        (StickyHistory, "owners", lambda self: iter(self._owners.items())),
        (ClientHashOrder, "of", as_filled),
        (ClientHashOrder, "of_copy", as_filled),
        (ClientHashOrder, "of_all_but", all_but_as_filled),
        (stickiness, "subtopology_hash_code", lambda subtopology: subtopology),
        (stickiness, "copied_table", hash_map.grown_table),
        (hash_map, "_TREE_FROM", 1_000_000),
        (PublicRackOptimiser, "optimise_stateful", lambda self: None),
        (PublicRackOptimiser, "optimise_stateless", lambda self: None),
        (PublicRackOptimiser, "optimise_standbys", lambda self: None),
        (public_sticky_racks, "MOST_ROUNDS", 1),
        (public_sticky_racks, "STATELESS_COSTS", Costs(1, 10)),
        (FlowNetwork, "minimise_cost", lambda self: None),
    ],
    ids=lambda wrong: wrong[1],
)
def test_no_rule_or_order_could_be_left_out_unnoticed(
    monkeypatch: pytest.MonkeyPatch, decided: list[tuple[Scenario, Decision]], wrong: Wrong
) -> None:
    """With any of these done wrong, the generated scenarios are decided otherwise."""
    assert_noticed(monkeypatch, wrong, decided, decide_public_sticky)
