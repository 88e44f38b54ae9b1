"""Hold our decisions against those of the published assignors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from tests.oracle.conftest import AssignorOracle
from tests.oracle.shrinking import shrink

Json = dict[str, Any]


def decide_here(scenario: Json, theirs: Json) -> Json:
    """Decide as ``caughtup assign`` does, in the oracle's form."""
    decision = decide(parse_scenario(scenario)).to_dict()
    for client in decision["clients"].values():
        del client["warmup"]
    return decision


def assert_same_decisions(
    oracle: AssignorOracle,
    scenarios: Iterable[Json],
    here: Callable[[Json, Json], Json] = decide_here,
) -> int:
    """Decide each scenario here and there: actives, standbys and probing have to be the same.

    ``here`` is given the scenario and what the oracle answered. Returns how many there were. One
    that is decided otherwise fails the test with its name, which has its seed, and with the least
    scenario left of it that is still decided otherwise.
    """
    count = 0
    for scenario in scenarios:
        ours, theirs = _answers(oracle, scenario, here)
        if ours != theirs or "exception" in theirs:
            pytest.fail(_report(oracle, scenario, here), pytrace=False)
        count += 1
    return count


def _report(oracle: AssignorOracle, scenario: Json, here: Callable[[Json, Json], Json]) -> str:
    """Name the scenario, and tell the decisions about the least part of it that fails alike."""
    raised = ["exception" in answer for answer in _answers(oracle, scenario, here)]

    def fails_alike(smaller: Json) -> bool:
        ours, theirs = _answers(oracle, smaller, here)
        return ours != theirs and ["exception" in ours, "exception" in theirs] == raised

    least = shrink(scenario, fails_alike)
    ours, theirs = map(json.dumps, _answers(oracle, least, here))
    return (
        f"{scenario['name']} is decided otherwise; the least of it that is:\n{json.dumps(least)}\n"
        f"ours: {ours}\nKafka's: {theirs}"
    )


def _answers(
    oracle: AssignorOracle, scenario: Json, here: Callable[[Json, Json], Json]
) -> tuple[Json, Json]:
    """Return our decision and Kafka's, or the exceptions in their places."""
    theirs = oracle.decide(scenario)
    try:
        ours = here(scenario, theirs)
    except Exception as raised:  # noqa: BLE001 (whatever is raised here is a difference)
        ours = {"exception": repr(raised)}
    told = ("probing_rebalance_needed", "clients", "exception")
    return ours, {key: theirs[key] for key in told if key in theirs}
