"""The same decisions as the published assignors', over generated scenarios of every family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle.comparison import assert_same_decisions
from tests.oracle.conftest import seeds_of_a_family
from tests.oracle.generated.racks import generate_racked
from tests.oracle.generated.scenarios import generate, generate_uneven
from tests.oracle.generated.sticky import generate_sticky
from tests.oracle.generated.tags import (
    generate_tagged,
    generate_tagged_and_racked,
    generate_tagged_fleet,
)
from tests.support.oracles import Oracle

Generate = Callable[[int], dict[str, Any]]


def by_the_sticky_ones(generated: Generate) -> Generate:
    """Have the scenarios decided by sticky and fallback_prior in turns."""
    assignors = ("sticky", "fallback_prior")
    return lambda seed: generated(seed) | {"assignor": assignors[seed % 2]}


FAMILIES: dict[str, Generate] = {
    "high_availability": generate,
    # Our heap has to be harmed by them just as Kafka's is.
    "high_availability, uneven loads": generate_uneven,
    "high_availability, racks": generate_racked,
    "high_availability, tags": generate_tagged,
    "high_availability, tags that can't be met": generate_tagged_fleet,
    "high_availability, tags and racks": generate_tagged_and_racked,
    "sticky and fallback_prior": generate_sticky,
    "sticky and fallback_prior, racks": by_the_sticky_ones(generate_racked),
    "sticky and fallback_prior, tags": by_the_sticky_ones(generate_tagged),
}


@pytest.mark.parametrize(
    "generated",
    [
        pytest.param(made, marks=pytest.mark.family(name), id=name)
        for name, made in FAMILIES.items()
    ],
)
@seeds_of_a_family()
def test_generated_scenarios_are_decided_as_the_published_assignors_decide_them(
    assignor_oracle: Oracle, generated: Generate, seeds: range, tally: Callable[[int], None]
) -> None:
    tally(assert_same_decisions(assignor_oracle, map(generated, seeds)))
