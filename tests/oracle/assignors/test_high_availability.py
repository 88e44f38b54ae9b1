"""The same decisions as the published HighAvailabilityTaskAssignor, over generated scenarios."""

from __future__ import annotations

from collections import Counter

import pytest

from caughtup.models.assignment.decision import MovementKind, Rule
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from tests.oracle.comparison import assert_same_decisions
from tests.oracle.generated.scenarios import generate, generate_uneven, numbers_seen
from tests.support.oracles import Oracle


@pytest.mark.heavy
def test_large_groups_are_decided_as_the_published_assignor_decides_them(
    assignor_oracle: Oracle,
) -> None:
    """One client had everything, then 299 joined: every task is to move, and two may warm up."""
    scenario = generate_uneven(0)
    tasks = [f"0_{partition}" for partition in range(600)]
    names = [f"{number:08x}-0000-4000-b000-{number * 7919:012x}" for number in range(300)]
    scenario["tasks"] = {task: {"stateful": True} for task in tasks}
    scenario["clients"] = {
        name: {
            "capacity": 1 + place % 3,
            "previous_active": tasks if place == 150 else [],
            "previous_standby": [],
            "lags": dict.fromkeys(tasks, -2 if place == 150 else 100_000 + place % 5),
        }
        for place, name in enumerate(names)
    }
    assert_same_decisions(assignor_oracle, [scenario])


@pytest.mark.heavy
def test_the_generator_reaches_what_it_has_to_reach() -> None:
    """Or else agreement over its scenarios would prove little."""
    seen: Counter[object] = Counter()
    for seed in range(1_000):
        scenario = generate(seed)
        clients = scenario["clients"].values()
        acceptable = scenario["config"]["acceptable.recovery.lag"]
        lags = {lag for client in clients for lag in client["lags"].values()}
        threads = {client["capacity"] for client in clients}
        tasks = [tuple(map(int, task.split("_"))) for task in scenario["tasks"]]
        seen["one client"] += len(clients) == 1
        seen["more clients than tasks"] += len(clients) > len(tasks)
        seen["40 threads or more"] += max(threads) >= 40
        seen["unequal threads"] += len(threads) > 1
        seen["running"] += -2 in lags
        seen["unknown"] += -3 in lags
        for edge in (-1, 0, 1):
            seen["acceptable lag", edge] += acceptable + edge in lags - {-2, -3}
        seen["standbys", scenario["config"]["num.standby.replicas"]] += 1
        seen.update(numbers_seen(scenario))
        kinds = {task["stateful"] for task in scenario["tasks"].values()}
        seen["stateful and stateless"] += len(kinds) == 2
        decision = decide(parse_scenario(scenario))
        seen["probing", decision.probing_rebalance_needed] += 1
        for movement in decision.movements:
            seen[movement.kind] += 1
            seen[movement.rule] += 1
    wanted = {*MovementKind, *Rule, ("probing", False), *(("standbys", n) for n in range(4))}
    assert wanted <= seen.keys()
    rare = {what: count for what, count in seen.items() if count < 5}
    assert not rare
