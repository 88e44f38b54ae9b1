"""Rounds are quick near an end, slower else, and many partitions take a tenth of the time."""

from __future__ import annotations

from caughtup.agents.probes.pace import Pace
from caughtup.models.records.reassignments import ReassignmentRecord


def observation(
    at_ms: int, copied: int | None, partition: int = 0, end: int = 1_000
) -> ReassignmentRecord:
    """Broker 3 has copied so many of the leader's records, unless that isn't known."""
    ends = {1: end} | ({} if copied is None else {3: copied})
    return ReassignmentRecord(
        2, "orders", partition, at_ms, (3, 1), (3,), (1,), (1,), 1, ends, leader_epoch=0
    )


def test_nothing_in_reassignment_is_observed_at_leisure() -> None:
    assert Pace(2.0).pause_seconds([], 0.01) == 5.0


def test_what_has_just_begun_is_observed_soon_again() -> None:
    pace = Pace(2.0)
    assert pace.pause_seconds([observation(0, 0)], 0.01) == 2.0
    assert pace.pause_seconds([observation(2_000, None)], 0.01) == 2.0


def test_a_far_end_is_awaited_at_leisure_and_a_near_one_is_not() -> None:
    pace = Pace(2.0)
    pace.pause_seconds([observation(0, 0)], 0.01)
    assert pace.pause_seconds([observation(2_000, 10)], 0.01) == 4.0  # 198 seconds to go
    assert pace.pause_seconds([observation(4_000, 800)], 0.01) == 2.0


def test_the_nearest_end_counts() -> None:
    pace = Pace(2.0)
    pace.pause_seconds([observation(0, 0), observation(0, 0, 1)], 0.01)
    assert pace.pause_seconds([observation(2_000, 1), observation(2_000, 900, 1)], 0.01) == 2.0
    assert pace.pause_seconds([observation(4_000, 2), observation(4_000, 900, 1)], 0.01) == 4.0


def test_what_was_copied_whole_is_about_to_end() -> None:
    pace = Pace(2.0)
    for at_ms in (0, 2_000, 4_000):
        assert pace.pause_seconds([observation(at_ms, 1_000)], 0.01) == 2.0


def test_what_gets_nowhere_is_not_near_its_end() -> None:
    pace = Pace(2.0)
    pace.pause_seconds([observation(0, 500)], 0.01)
    assert pace.pause_seconds([observation(2_000, 500)], 0.01) == 4.0
    assert pace.pause_seconds([observation(4_000, 600, end=2_000)], 0.01) == 4.0


def test_many_partitions_are_observed_for_a_tenth_of_the_time_at_most() -> None:
    pace = Pace(2.0)
    for at_ms in (0, 2_000):
        moving = [observation(at_ms, 900, partition) for partition in range(5_000)]
        assert pace.pause_seconds(moving, 0.1) == 4.0 if at_ms else 2.0
        assert pace.pause_seconds(moving, 3.0) == 27.0


def test_a_round_that_waits_for_a_broker_makes_nobody_wait_for_the_next() -> None:
    pace = Pace(2.0)
    assert pace.pause_seconds([], 30.0) == 5.0
    assert pace.pause_seconds([observation(0, 0)], 30.0) == 2.0
    assert (
        pace.pause_seconds([observation(2_000, 900, partition) for partition in range(600)], 30.0)
        == 4.0
    )
