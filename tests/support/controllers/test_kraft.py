"""What a KRaft controller makes of a partition: Kafka's own cases, and those seen on a cluster.

tests/oracle/test_partition_reassignment.py holds generated ones against the published jars.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.controllers.kraft import Revert, cancelled, isr_changed, reassigned, revert
from tests.support.controllers.partition_state import PartitionState

ALIVE = range(10)
ADDED_AT_FIRST, WHOLE, ADDED = (3, 7), (4, 1), (4, 3)
RELEASES = (ADDED_AT_FIRST, WHOLE, ADDED)
BEFORE = PartitionState((1, 2, 3), (1, 2, 3), 1, 0)


def brokers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def ends_in(now: str, wanted: str, isr: str, release: tuple[int, int]) -> str:
    """Say what a move is when this ISR is reported: ``no``, or its replicas and ISR."""
    shape = reassigned(PartitionState(brokers(now), (), None, 0), brokers(wanted), ALIVE, release)
    after = isr_changed(shape, brokers(isr), ALIVE, release)
    if after.in_progress:
        return "no"
    return ",".join(map(str, after.replicas)) + "|" + ",".join(map(str, after.isr))


@pytest.mark.parametrize(
    ("now", "wanted", "isr", "whole", "added"),
    [
        ("1,2,3", "4,5,6", "1,2,3,4,5", "no", "no"),
        ("1,2,3", "4,5,6", "1,2,3,4,5,6", "4,5,6|4,5,6", "4,5,6|4,5,6"),
        ("1,2,3", "4,5,6", "4,5,6", "4,5,6|4,5,6", "4,5,6|4,5,6"),
        ("0,1,2", "1,2", "0,1", "no", "no"),
        ("0,1,2", "0,1,3", "3", "no", "0,1,3|3"),
        ("0,1,2", "0,1,2,3", "0,1,3", "no", "0,1,2,3|0,1,3"),
        ("0,1,2", "1,2,3", "0,1,3", "no", "1,2,3|1,3"),
        ("0,1,2", "2,3,4", "0,1,3,4", "no", "2,3,4|3,4"),
        ("0,1,2,3", "2,3,4", "0,1,3,4", "no", "no"),
        ("1,2,3", "1,2", "1,3", "no", "no"),
    ],
)
def test_what_is_missing_of_the_target_may_keep_it_from_being_complete(
    now: str, wanted: str, isr: str, whole: str, added: str
) -> None:
    assert ends_in(now, wanted, isr, WHOLE) == whole
    assert ends_in(now, wanted, isr, ADDED) == added


@pytest.mark.parametrize(
    ("now", "wanted", "isr", "end"),
    [
        ("0,1,2", "1,2,3", "0,1,3", "1,2,3|1,3"),
        ("0,1,2,3", "2,3,4", "0,1,3,4", "2,3,4|3,4"),
        ("1,2,3", "1,2", "1,3", "1,2|1"),
        ("1,2,3", "1,2", "3", "no"),
    ],
)
def test_up_to_3_7_the_added_ones_suffice_and_for_a_removal_any_that_stays(
    now: str, wanted: str, isr: str, end: str
) -> None:
    assert ends_in(now, wanted, isr, ADDED_AT_FIRST) == end


@pytest.mark.parametrize("release", RELEASES)
def test_three_replicas_go_over_to_three_others_in_two_records(release: tuple[int, int]) -> None:
    """As a cluster's metadata log had it: no row between, one epoch more."""
    asked = reassigned(BEFORE, (4, 5, 6), ALIVE, release)
    assert asked == PartitionState(
        (4, 5, 6, 1, 2, 3), (1, 2, 3), 1, 0, adding=(4, 5, 6), removing=(1, 2, 3)
    )
    first = isr_changed(asked, (1, 2, 3, 5), ALIVE, release)
    second = isr_changed(first, (5, 1, 2, 3, 4), ALIVE, release)
    assert (second.in_progress, second.leader, second.leader_epoch) == (True, 1, 0)
    end = isr_changed(second, (5, 6, 1, 2, 3, 4), ALIVE, release)
    assert end == PartitionState((4, 5, 6), (5, 6, 4), 4, 1)


def test_replicas_to_be_removed_are_sorted_and_come_after_the_target() -> None:
    asked = reassigned(PartitionState((3, 1, 2), (3,), 3, 0), (5, 4), ALIVE, ADDED)
    assert (asked.replicas, asked.adding, asked.removing) == ((5, 4, 1, 2, 3), (4, 5), (1, 2, 3))


@pytest.mark.parametrize(
    ("wanted", "leader", "epoch"),
    [
        pytest.param((3, 2, 1), 1, 0, id="only another order"),
        pytest.param((3, 2), 3, 1, id="fewer, without the leader"),
        pytest.param((2, 1), 1, 1, id="fewer, with the leader"),
    ],
)
def test_what_needs_no_copying_is_complete_in_the_record_that_asks_for_it(
    wanted: tuple[int, ...], leader: int, epoch: int
) -> None:
    isr = tuple(replica for replica in BEFORE.isr if replica in wanted)
    assert reassigned(BEFORE, wanted, ALIVE, ADDED) == PartitionState(wanted, isr, leader, epoch)


def test_the_leader_stays_where_it_can() -> None:
    """Kafka's own example: broker 1 goes, 4 comes."""
    moving = PartitionState((1, 2, 3, 4), (1, 2, 3), 1, 0, adding=(4,), removing=(1,))
    end = PartitionState((2, 3, 4), (2, 3, 4), 2, 1)
    assert isr_changed(moving, (1, 2, 3, 4), ALIVE, WHOLE) == end
    led_by_3 = isr_changed(replace(moving, leader=3), (1, 2, 3, 4), ALIVE, WHOLE)
    assert led_by_3 == replace(end, leader=3)
    assert isr_changed(moving, (1, 2, 3, 4), (1, 4), WHOLE) == replace(end, leader=4)
    assert isr_changed(moving, (1, 2, 3, 4), (1,), WHOLE) == replace(end, leader=None)


def test_a_cancellation_takes_the_added_ones_out_and_counts_one_epoch() -> None:
    moving = reassigned(BEFORE, (4, 5, 6), ALIVE, ADDED)
    in_part = isr_changed(moving, (1, 2, 3, 5), ALIVE, ADDED)
    assert cancelled(in_part, ALIVE, ADDED) == PartitionState((1, 2, 3), (1, 2, 3), 1, 1)


def test_a_cancelled_removal_counts_no_epoch() -> None:
    waiting = reassigned(PartitionState((1, 2, 3), (1, 3), 1, 0), (1, 2), ALIVE, ADDED)
    assert waiting.in_progress
    assert cancelled(waiting, ALIVE, ADDED) == PartitionState((1, 2, 3), (1, 3), 1, 0)


def test_asking_for_the_original_replicas_completes_at_once_from_3_8_to_4_2_and_else_never() -> (
    None
):
    """What the first request added stays listed as added, and is now to be removed as well."""
    for release in RELEASES:
        moving = reassigned(BEFORE, (4, 5, 6), ALIVE, release)
        after = reassigned(moving, (1, 2, 3), ALIVE, release)
        if release == WHOLE:
            assert after == PartitionState((1, 2, 3), (1, 2, 3), 1, 1)
            continue
        stuck = PartitionState((1, 2, 3, 4, 5, 6), (1, 2, 3), 1, 0, (4, 5, 6), (4, 5, 6))
        assert after == stuck
        assert isr_changed(stuck, (1, 2, 3, 4, 5, 6), ALIVE, release).in_progress
        assert cancelled(stuck, ALIVE, release) == PartitionState((1, 2, 3), (1, 2, 3), 1, 1)


def test_a_cancellation_may_leave_the_replicas_in_another_order() -> None:
    moving = reassigned(PartitionState((1, 2, 3), (1, 2), 1, 0), (1, 3), ALIVE, ADDED)
    assert (moving.replicas, moving.removing) == ((1, 3, 2), (2,))
    back = cancelled(moving, ALIVE, ADDED)
    assert back is not None
    assert back.replicas == (1, 3, 2)


def test_after_a_change_of_target_a_cancellation_keeps_what_the_first_target_added() -> None:
    """One replica becomes three, and two of them were never in sync."""
    first = reassigned(PartitionState((1,), (1,), 1, 0), (4, 5), ALIVE, ADDED)
    second = reassigned(first, (4, 6), ALIVE, ADDED)
    assert (second.replicas, second.adding, second.removing) == ((4, 6, 1, 5), (6,), (1, 5))
    back = cancelled(second, ALIVE, ADDED)
    assert back is not None
    assert (back.replicas, back.isr, back.in_progress) == ((4, 1, 5), (1,), False)


def test_a_second_change_of_target_can_leave_a_broker_in_both_lists() -> None:
    first = reassigned(BEFORE, (4, 5, 6), ALIVE, ADDED)
    second = reassigned(first, (4, 5, 2), ALIVE, ADDED)
    assert (second.replicas, second.adding, second.removing) == (
        (4, 5, 2, 1, 3, 6),
        (4, 5, 6),
        (1, 3, 6),
    )
    for release, done in ((ADDED_AT_FIRST, False), (WHOLE, True), (ADDED, False)):
        after = isr_changed(second, (4, 5, 2, 1, 3, 6), ALIVE, release)
        assert after.in_progress is not done
        assert after.replicas == ((4, 5, 2) if done else second.replicas)


REVERTED = PartitionState((4, 5, 3, 2, 1), (), 4, 0, adding=(4, 5))


def test_a_reverted_isr_is_unclean_where_only_added_replicas_are_in_sync() -> None:
    some = replace(REVERTED, isr=(4, 5, 2))
    assert revert(some) == Revert((3, 2, 1), (2,), unclean=False)
    none = replace(REVERTED, isr=(4, 5))
    assert revert(none) == Revert((3, 2, 1), (3,), unclean=True)
    assert cancelled(some, ALIVE, ADDED) == PartitionState((3, 2, 1), (2,), 2, 1)
    assert cancelled(none, ALIVE, ADDED) is None


def test_what_is_not_in_progress_cannot_be_cancelled() -> None:
    assert cancelled(BEFORE, ALIVE, ADDED) is None
    moving = reassigned(BEFORE, (4, 5, 6), ALIVE, ADDED)
    back = cancelled(moving, ALIVE, ADDED)
    assert back is not None
    assert cancelled(back, ALIVE, ADDED) is None


def test_a_broker_that_is_down_may_be_asked_for_and_stays_out_of_sync() -> None:
    asked = reassigned(BEFORE, (1, 2, 7), (1, 2, 3), ADDED)
    assert (asked.adding, asked.isr, asked.in_progress) == ((7,), (1, 2, 3), True)
