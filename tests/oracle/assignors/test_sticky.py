"""The same decisions as the published sticky assignor and its fallback, over generated scenarios."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from caughtup.models.assignment.decision import Decision, MovementKind
from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.java import hash_map, hash_order
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.assignors.kafka import sticky
from caughtup.models.assignors.kafka.client_loads import ClientLoads
from caughtup.models.assignors.kafka.stickiness import StickyHistory, TaskPairs
from caughtup.models.assignors.registry import decide
from tests.oracle.assignors.done_wrong import Wrong, all_but_as_filled, as_filled, assert_noticed
from tests.oracle.comparison import assert_same_decisions
from tests.oracle.generated.scenarios import numbers_seen
from tests.oracle.generated.sticky import generate_sticky, join
from tests.support.oracles import Oracle


@pytest.mark.heavy
@pytest.mark.parametrize("assignor", ["sticky", "fallback_prior"])
def test_a_large_group_that_grows_is_decided_as_the_published_assignors_decide_it(
    assignor_oracle: Oracle, assignor: str
) -> None:
    """Twelve subtopologies of 250 partitions: their tasks crowd buckets of Java's hash tables."""
    rng = random.Random(12)
    tasks = [f"{subtopology}_{p}" for subtopology in range(12) for p in range(250)]
    scenario = generate_sticky(0) | {
        "assignor": assignor,
        "tasks": {task: {"stateful": True} for task in tasks},
        "clients": {},
    }
    scenario["config"]["num.standby.replicas"] = 1
    for joining in (70, 1):
        join(scenario, joining, rng)
        assert_same_decisions(assignor_oracle, [scenario])
        decision = decide(parse_scenario(scenario))
        for process, given in decision.clients.items():
            client = scenario["clients"][str(process)]
            client["previous_active"] = [str(task) for task in given.active]
            client["previous_standby"] = [str(task) for task in given.standby]


@pytest.mark.heavy
def test_the_generator_reaches_what_it_has_to_reach() -> None:
    """Or else agreement over its scenarios would prove little."""
    seen: Counter[object] = Counter()
    for seed in range(1_000):
        scenario = generate_sticky(seed)
        clients = scenario["clients"].values()
        ran = Counter(task for client in clients for task in client["previous_active"])
        stood_by = Counter(task for client in clients for task in client["previous_standby"])
        most = max(len(client["previous_active"]) for client in clients)
        threads = {client["capacity"] for client in clients}
        tasks = [tuple(map(int, task.split("_"))) for task in scenario["tasks"]]
        seen[scenario["assignor"]] += 1
        seen["hundreds of tasks"] += len(tasks) >= 200
        seen["one client"] += len(clients) == 1
        seen["more clients than tasks"] += len(clients) > len(tasks)
        seen["40 threads or more"] += max(threads) >= 40
        seen["unequal threads"] += len(threads) > 1
        seen["one client ran most"] += len(clients) > 3 and most > sum(ran.values()) / 2
        seen["owners gone"] += bool(scenario["tasks"].keys() - ran.keys())
        seen["tasks gone"] += bool(ran.keys() - scenario["tasks"].keys())
        seen["two say they ran it"] += max(ran.values(), default=0) > 1
        seen["many had a standby"] += max(stood_by.values(), default=0) > 9
        seen["both on one client"] += any(
            set(client["previous_active"]) & set(client["previous_standby"]) for client in clients
        )
        seen["standbys", scenario["config"]["num.standby.replicas"]] += 1
        seen.update(numbers_seen(scenario))
        seen["a table that Java 25 makes smaller"] += len(tasks) in (12, 24, 48, 96, 192)
        kinds = {task["stateful"] for task in scenario["tasks"].values()}
        seen["stateful and stateless"] += len(kinds) == 2
        seen.update(movement.kind for movement in decide(parse_scenario(scenario)).movements)
    wanted = {"sticky", "fallback_prior", *(("standbys", n) for n in range(4))}
    assert (
        wanted
        | {MovementKind.ACTIVE, MovementKind.COLD, MovementKind.STANDBY, MovementKind.STATELESS}
        <= seen.keys()
    )
    rare = {what: count for what, count in seen.items() if count < 5}
    assert not rare


@pytest.fixture(scope="module")
def decided() -> list[tuple[Scenario, Decision]]:
    scenarios = [parse_scenario(generate_sticky(seed)) for seed in range(600)]
    return [(scenario, decide(scenario)) for scenario in scenarios]


@pytest.mark.parametrize(
    "wrong",
    [
        (TaskPairs, "has_new", lambda self, place, companions: True),
        (ClientLoads, "should_give_way", lambda self, place: False),
        (sticky, "_rank", lambda client: (client.task_load(), -client.capacity)),
        (StickyHistory, "owners", lambda self: iter(self._owners.items())),
        (ClientHashOrder, "of", as_filled),
        (ClientHashOrder, "of_copy", as_filled),
        (ClientHashOrder, "of_all_but", all_but_as_filled),
        (ClientHashOrder, "_crowds", lambda self, places, table, excluded=0: False),
        (hash_order, "copied_table", lambda size: 16),
        (sticky, "copied_table", hash_map.grown_table),
        (hash_map, "_TREE_FROM", 1_000_000),
        (hash_map, "_LEAST_TABLE_WITH_TREES", 16),
    ],
    ids=lambda wrong: wrong[1],
)
def test_no_rule_or_order_could_be_left_out_unnoticed(
    monkeypatch: pytest.MonkeyPatch, decided: list[tuple[Scenario, Decision]], wrong: Wrong
) -> None:
    """With any of these done wrong, the generated scenarios are decided otherwise."""
    assert_noticed(monkeypatch, wrong, decided, decide)
