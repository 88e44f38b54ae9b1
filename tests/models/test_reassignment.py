"""Partitions in movement: phases, what is left, progress, and how a movement ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignment import EndedMovement, ReassignmentTracker, offsets_remaining
from caughtup.models.reassignment_look import PartitionLook

PARTITION = TopicPartition("orders", 0)
#: Brokers 3 and 4 are to take the partition over from 2; 1 stays.
MOVING = PartitionLook(
    partition=PARTITION,
    replicas=(3, 4, 1, 2),
    adding=(3, 4),
    removing=(2,),
    isr=(1, 2),
    leader=1,
    log_ends={1: 1_000, 2: 1_000, 3: 400, 4: 900},
    as_of_ms=1_000,
)


def test_the_target_is_what_remains_after_the_removals_in_order() -> None:
    assert MOVING.target == (3, 4, 1)


def test_what_is_left_is_what_the_furthest_added_replica_lacks() -> None:
    assert offsets_remaining(MOVING) == 600
    assert offsets_remaining(replace(MOVING, log_ends={1: 1_000, 3: 1_000, 4: 1_005})) == 0


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"leader": None}, id="no leader"),
        pytest.param({"log_ends": {3: 400, 4: 900}}, id="the leader's log end is unknown"),
        pytest.param({"log_ends": {1: 1_000, 3: 400}}, id="an added replica's is unknown"),
        pytest.param({"log_ends": {}}, id="nothing is known"),
    ],
)
def test_what_is_left_is_unknown_rather_than_0(change: dict[str, Any]) -> None:
    assert offsets_remaining(replace(MOVING, **change)) is None


@pytest.mark.parametrize(
    ("change", "progressed"),
    [
        pytest.param({}, False, id="nothing happened"),
        pytest.param({"log_ends": {**MOVING.log_ends, 3: 401}}, True, id="it copied"),
        pytest.param({"log_ends": {**MOVING.log_ends, 1: 2_000}}, False, id="the leader grew"),
        pytest.param({"log_ends": {**MOVING.log_ends, 3: 0}}, False, id="its copy began again"),
        pytest.param({"log_ends": {}}, False, id="no broker answered"),
        pytest.param({"isr": (1, 2, 4)}, True, id="a replica came in sync"),
        pytest.param({"isr": (1,)}, False, id="a replica fell out of sync"),
        pytest.param({"leader": 2}, False, id="another leader"),
        pytest.param({"replicas": (5, 1, 2), "adding": (5,)}, True, id="another target"),
    ],
)
def test_progress_is_copying_coming_in_sync_or_another_target(
    change: dict[str, Any], progressed: bool
) -> None:
    tracker = ReassignmentTracker()
    tracker.apply(MOVING)
    later = replace(MOVING, as_of_ms=5_000, **change)
    tracker.apply(later)
    tracked = tracker.moving[PARTITION]
    assert (tracked.first, tracked.latest) == (MOVING, later)
    assert tracked.progressed_ms == (5_000 if progressed else 1_000)


@pytest.mark.parametrize(
    ("replicas", "outcome"),
    [
        pytest.param((3, 4, 1), "completed", id="the target"),
        pytest.param((1, 2), "cancelled", id="where it came from"),
        pytest.param((2, 1), "cancelled", id="where it came from, in another order"),
        pytest.param((3, 4), "superseded", id="part of the target"),
        pytest.param((5, 6, 7), "superseded", id="somewhere else"),
        pytest.param(None, "vanished", id="the topic is gone"),
    ],
)
def test_the_shape_it_ends_in_tells_how_it_ended(
    replicas: tuple[int, ...] | None, outcome: str
) -> None:
    tracker = ReassignmentTracker()
    tracker.apply(MOVING)
    ended = tracker.end(PARTITION, replicas, replicas or (), 9_000)
    assert ended == EndedMovement(
        PARTITION, outcome, 9_000, (3, 4, 1), replicas, original=(1, 2), since_ms=1_000
    )
    assert tracker.moving == {}
    assert tracker.ended == [ended]


def test_a_movement_that_was_given_another_target_completes_there() -> None:
    tracker = ReassignmentTracker()
    tracker.apply(MOVING)
    tracker.apply(replace(MOVING, replicas=(5, 1, 2), adding=(5,), removing=(2,)))
    ended = tracker.end(PARTITION, (5, 1), (5, 1), 9_000)
    assert ended is not None
    assert (ended.outcome, ended.target) == ("completed", (5, 1))


def test_a_movement_with_another_target_that_is_cancelled_is_back_where_it_began() -> None:
    tracker = ReassignmentTracker()
    tracker.apply(MOVING)
    tracker.apply(replace(MOVING, replicas=(5, 1, 2), adding=(5,), removing=(2,)))
    ended = tracker.end(PARTITION, (1, 2), (1, 2), 9_000)
    assert ended is not None
    assert ended.outcome == "cancelled"


def test_the_end_of_what_was_never_seen_moving_is_nothing() -> None:
    tracker = ReassignmentTracker()
    assert tracker.end(PARTITION, (1, 2), (1, 2), 0) is None
    assert tracker.ended == []


def test_a_partition_that_moves_again_is_a_movement_of_its_own() -> None:
    tracker = ReassignmentTracker()
    tracker.apply(MOVING)
    tracker.end(PARTITION, MOVING.target, (), 2_000)
    again = replace(MOVING, as_of_ms=3_000)
    tracker.apply(again)
    assert tracker.moving[PARTITION].first == again


@pytest.mark.parametrize("kept", [1, 3])
def test_only_the_last_movements_that_ended_are_kept_newest_last(kept: int) -> None:
    tracker = ReassignmentTracker(kept=kept)
    for number in range(5):
        tracker.apply(MOVING)
        tracker.end(PARTITION, None, (), number)
    assert [ended.at_ms for ended in tracker.ended] == list(range(5))[-kept:]
