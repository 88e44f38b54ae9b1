"""The documents' examples once more, with every rebalance held against the published jar's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.models.assignors import test_seed_rebalance, test_seed_task_assignors
from tests.models.assignors.walk import Begin, Generation, Walk
from tests.oracle.comparison import assert_same_decisions
from tests.support.oracles import Oracle


@pytest.fixture
def begin(assignor_oracle: Oracle) -> Iterator[Begin]:
    held = 0

    class HeldWalk(Walk):
        def rebalance(self) -> Generation:
            nonlocal held
            held += assert_same_decisions(assignor_oracle, [self.scenario()])
            return super().rebalance()

    yield HeldWalk
    assert held


# The tests of those modules are tests of this one, too, and here their groups are made as above.
for module in (test_seed_rebalance, test_seed_task_assignors):
    globals().update({name: test for name, test in vars(module).items() if name[:5] == "test_"})
