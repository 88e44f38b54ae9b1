"""A scale-out under the follower: it waits for a recommendation, then for what warms up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.assignors.following.follower import Patience
from caughtup.models.simulation.streams.plan import PlannedActions, simulate
from tests.models.simulation.streams.test_plan import MINUTE, application, running


def rebalances(*, follows: bool) -> list[int]:
    """Return when the rebalances of a scale-out are, in whole seconds."""
    follower = Patience() if follows else None
    of = replace(application(24, "minimal_movement"), follower=follower)
    end = simulate(of, running(3, 24), PlannedActions(add=1))
    assert end.endless is None
    assert end.figures.copies_built == 6
    return [mark.at_ms // 1_000 for mark in end.marks if mark.kind == "rebalance"]


def test_a_follower_looks_again_long_before_the_probing_interval() -> None:
    """States of 100,000 offsets, two at a time at 10,000 a second: 20 s each round."""
    found = rebalances(follows=True)
    assert max(found) * 1_000 < 3 * MINUTE
    assert found != rebalances(follows=False)


def test_new_processes_are_recommended_to_only_at_the_next_rebalance() -> None:
    first, second, *_ = rebalances(follows=True)
    assert second - first == pytest.approx(5, abs=1)
