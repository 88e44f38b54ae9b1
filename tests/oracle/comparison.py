"""Hold our decisions against those of the published assignors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from caughtup.models.assignors import decide
from caughtup.models.assignors.scenario import parse_scenario
from tests.oracle.conftest import AssignorOracle


def assert_same_decisions(oracle: AssignorOracle, scenarios: Iterable[dict[str, Any]]) -> None:
    """Decide each scenario here and there: actives, standbys and probing have to be the same."""
    for scenario in scenarios:
        theirs = oracle.decide(scenario)
        assert "exception" not in theirs, f"{scenario['name']}: {theirs}"
        ours = decide(parse_scenario(scenario))
        assigned = {
            str(process): {
                "active": [str(task) for task in client.active],
                "standby": [str(task) for task in client.standby],
            }
            for process, client in ours.clients.items()
        }
        assert assigned == theirs["clients"], scenario["name"]
        assert ours.probing_rebalance_needed == theirs["probing_rebalance_needed"], scenario["name"]
