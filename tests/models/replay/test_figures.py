"""For how long tasks stand still after a change of members, and when nobody knows."""

from __future__ import annotations

from caughtup.models.replay.figures import standing_still
from caughtup.models.replay.outcome import RECORDED, replay_group
from caughtup.models.replay.settings import ReplaySetting
from tests.models.assignors.building import client, described
from tests.models.replay.test_outcome import wire_history

KAFKAS = ReplaySetting("high_availability")
#: The rebalance itself: a heartbeat until all know of it, and a few requests.
REBALANCE_SECONDS = 3.2


def test_a_task_that_nobody_has_stands_still_until_its_state_is_restored() -> None:
    group = described(client(active=("0_0",)), client(), stateful=("0_0", "0_1"))
    still = standing_still(group, 2_000.0, 0)
    assert still is not None
    assert 50 <= still.longest_seconds <= 50 + REBALANCE_SECONDS
    assert still.seconds == still.longest_seconds
    assert standing_still(group, None, 0) is None


def test_what_warms_up_first_stands_still_for_its_rebalance_only() -> None:
    tasks = tuple(f"0_{number}" for number in range(6))
    group = described(client(active=tasks), client(), stateful=tasks)
    still = standing_still(group, None, 0)
    assert still is not None
    assert 0 < still.longest_seconds <= REBALANCE_SECONDS


def test_rows_of_changes_have_it_and_those_of_what_was_recorded_do_not() -> None:
    for row in replay_group(wire_history(), [None, KAFKAS]):
        if row.figures is not None:
            known = row.figures.seconds_still is not None
            assert known == (row.setting != RECORDED)
