"""What instances more would cost, from how the group is now."""

from __future__ import annotations

import pytest

from caughtup.models.what_if.adding import cost_of_adding
from caughtup.models.what_if.question import LeaderAssignedGroup, group_of
from tests.support.pictures.played_cluster import NOW_MS
from tests.support.pictures.scenes import scale_out


@pytest.fixture(scope="module")
def group() -> LeaderAssignedGroup:
    """Twenty-four tasks on three instances, and a fourth that warms up two copies."""
    found = group_of(scale_out().state, "payments-totals", NOW_MS)
    assert found is not None
    return found


def test_a_fifth_instance_costs_what_balance_needs_and_kafkas_assignor_more(
    group: LeaderAssignedGroup,
) -> None:
    cost = cost_of_adding(group, 1)
    # Balanced, 24 tasks are 5 on four of the five and 4 on one; the fourth and the fifth have none.
    assert cost.cost.copies == 8
    assert cost.kafka_cost.copies > cost.cost.copies
    assert cost.cost.seconds == 600 * cost.cost.rebalances


def test_copies_that_are_under_way_already_are_not_built_again(group: LeaderAssignedGroup) -> None:
    cost = cost_of_adding(group, 1)
    decided = group.decided.recommendation
    assert decided is not None
    assert cost.kafka_cost.offsets is not None
    whole = 24 * max(group.decided.inputs.scenario.greatest_lags.values())
    assert cost.kafka_cost.offsets < whole


def test_with_more_instances_than_tasks_the_others_stay_idle(group: LeaderAssignedGroup) -> None:
    assert cost_of_adding(group, 30).cost.copies <= 24


def test_it_ends_between_two_steps_when_it_is_told_to(group: LeaderAssignedGroup) -> None:
    def end() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cost_of_adding(group, 1, end)
