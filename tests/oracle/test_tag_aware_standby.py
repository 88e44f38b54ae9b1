"""The same decisions as the published HighAvailabilityTaskAssignor for groups with client tags."""

from __future__ import annotations

import pytest

from tests.oracle.conftest import AssignorOracle
from tests.oracle.generated_tags import generate_tagged, generate_tagged_fleet
from tests.oracle.test_high_availability import _assert_same

BLOCK = 250


@pytest.mark.parametrize("block", range(7))
def test_tagged_groups_are_decided_as_the_published_assignor_decides_them(
    assignor_oracle: AssignorOracle, block: int
) -> None:
    _assert_same(assignor_oracle, map(generate_tagged, range(block * BLOCK, (block + 1) * BLOCK)))


def test_fleets(assignor_oracle: AssignorOracle) -> None:
    _assert_same(assignor_oracle, map(generate_tagged_fleet, range(100)))
