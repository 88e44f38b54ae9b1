"""What a plan costs until the group is balanced: played where it is small, else estimated."""

from __future__ import annotations

from typing import Any

from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.plan_cost import plan_cost
from caughtup.models.records.fields import json_values

RUNNING, NOTHING = -2, 1_000


def joining(tasks: int, clients: int = 2, assignor: str = "high_availability") -> Scenario:
    """All tasks on the first clients, and one more that has nothing."""
    names = [f"0_{number}" for number in range(tasks)]
    owner = {name: number % (clients - 1) for number, name in enumerate(names)}
    data: dict[str, Any] = {
        "assignor": assignor,
        "config": {"acceptable.recovery.lag": 10, "max.warmup.replicas": 2},
        "tasks": {name: {"stateful": True} for name in names},
        "clients": {
            f"00000000-0000-0000-0000-{client:012d}": {
                "capacity": 1,
                "previous_active": [name for name in names if owner[name] == client],
                "previous_standby": [],
                "lags": {name: RUNNING if owner[name] == client else NOTHING for name in names},
            }
            for client in range(clients)
        },
    }
    return parse_scenario(data)


def cost(scenario: Scenario) -> dict[str, Any]:
    return json_values(plan_cost(scenario, decide(scenario)))


def test_every_copy_and_every_probing_rebalance_until_balanced_counts() -> None:
    assert cost(joining(8)) == {
        "copies": 4,
        "offsets": 4_000,
        "rebalances": 2,
        "seconds": 1_200.0,
        "estimated": False,
    }


def test_a_balanced_group_costs_nothing() -> None:
    assert cost(joining(1, clients=2))["copies"] == 0


def test_what_is_too_large_to_be_played_is_told_from_the_first_decision() -> None:
    large = cost(joining(600, clients=4))
    assert large["estimated"] is True
    assert large["copies"] == large["offsets"] / NOTHING
    assert large["rebalances"] == -(-large["copies"] // 2)
    assert large["seconds"] == large["rebalances"] * 600
