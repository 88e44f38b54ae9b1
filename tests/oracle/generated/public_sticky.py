"""Scenarios made from a seed for the public sticky assignor, with and without racks and tags."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.generated.racks import COSTS, generate_racked
from tests.oracle.generated.sticky import generate_sticky
from tests.oracle.generated.tags import generate_tagged_and_racked


def generate_public_sticky(seed: int) -> dict[str, Any]:
    """Make a scenario of who had what; clients come in any order, as the leader may meet them."""
    return _for_public_sticky(generate_sticky(seed), random.Random(f"public {seed}"))


def generate_public_sticky_racked(seed: int) -> dict[str, Any]:
    """Make a scenario with racks, mostly with both costs: without them nothing is optimised."""
    rng = random.Random(f"public racks {seed}")
    return _with_costs(_for_public_sticky(generate_racked(seed), rng), rng)


def generate_public_sticky_tagged(seed: int) -> dict[str, Any]:
    """Make a scenario with racks and client tags, which should make no difference."""
    rng = random.Random(f"public tags {seed}")
    return _with_costs(_for_public_sticky(generate_tagged_and_racked(seed), rng), rng)


def _for_public_sticky(scenario: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    names = list(scenario["clients"])
    rng.shuffle(names)
    clients = {name: scenario["clients"][name] for name in names}
    name = f"public {scenario['name']}"
    return scenario | {"name": name, "assignor": "public_sticky", "clients": clients}


def _with_costs(scenario: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.85:
        for cost in COSTS:
            if scenario["config"].get(cost) is None:
                scenario["config"][cost] = rng.choice([0, 1, 1, 3, 10])
    return scenario
