"""Hold our decisions against those of the published assignors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from caughtup.models.assignors import decide
from caughtup.models.assignors.scenario import parse_scenario
from tests.oracle.conftest import AssignorOracle
from tests.oracle.shrinking import shrink


def assert_same_decisions(oracle: AssignorOracle, scenarios: Iterable[dict[str, Any]]) -> int:
    """Decide each scenario here and there: actives, standbys and probing have to be the same.

    Returns how many there were. One that is decided otherwise fails the test with its name, which
    has its seed, and with the least scenario left of it that is still decided otherwise.
    """
    count = 0
    for scenario in scenarios:
        ours, theirs = _here(scenario), _there(oracle, scenario)
        if ours != theirs or "exception" in theirs:
            raised = "exception" in ours, "exception" in theirs
            pytest.fail(_report(oracle, scenario, raised), pytrace=False)
        count += 1
    return count


def _report(oracle: AssignorOracle, scenario: dict[str, Any], raised: tuple[bool, bool]) -> str:
    """Name the scenario, and tell the decisions about the least part of it that fails alike."""

    def fails_alike(smaller: dict[str, Any]) -> bool:
        here, there = _here(smaller), _there(oracle, smaller)
        return here != there and ("exception" in here, "exception" in there) == raised

    least = shrink(scenario, fails_alike)
    return (
        f"{scenario['name']} is decided otherwise; the least of it that is:\n{json.dumps(least)}\n"
        f"ours: {json.dumps(_here(least))}\nKafka's: {json.dumps(_there(oracle, least))}"
    )


def _here(scenario: dict[str, Any]) -> dict[str, Any]:
    try:
        decision = decide(parse_scenario(scenario)).to_dict()
    except Exception as raised:  # noqa: BLE001 (whatever is raised here is a difference)
        return {"exception": repr(raised)}
    for client in decision["clients"].values():
        del client["warmup"]
    return decision


def _there(oracle: AssignorOracle, scenario: dict[str, Any]) -> dict[str, Any]:
    decision = oracle.decide(scenario)
    decision.pop("ms", None)
    return decision
