"""How a reassignment ends: its outcome, ends that aren't certain yet, others that follow at once."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from caughtup.models.reassignments.tracker import OLDER_MS, SETTLED_MS, ReassignmentTracker
from caughtup.models.records.reassignment_lines import EndedReassignment
from caughtup.models.records.reassignments import (
    ClusterRecord,
    ReassignmentRecord,
)
from caughtup.models.verdicts import OUTCOMES
from tests.support.reassignments import observations

PARTITION = observations.MOVING.topic_partition
MOVING = replace(observations.MOVING, leader_epoch=7)
KRAFT = ClusterRecord(2, 0, software=(4, 3))
Brokers = tuple[int, ...]


def observation(
    replicas: Brokers, adding: Brokers = (), removing: Brokers = (), **more: Any
) -> Any:
    return replace(MOVING, replicas=replicas, adding=adding, removing=removing, **more)


def moving(
    *observations: ReassignmentRecord, cluster: ClusterRecord = KRAFT
) -> ReassignmentTracker:
    tracker = ReassignmentTracker()
    tracker.apply_cluster(cluster)
    for one in observations:
        assert tracker.apply(one) is None
    return tracker


def ended(tracker: ReassignmentTracker, replicas: Brokers | None) -> EndedReassignment:
    """End it with everybody in sync."""
    end = tracker.end(PARTITION, replicas, replicas or (), 9_000, 8)
    assert end is not None
    return end


@pytest.mark.parametrize(
    ("replicas", "outcome"),
    [
        pytest.param((3, 4, 1), "completed", id="the target"),
        pytest.param((1, 2), "cancelled", id="where it came from"),
        pytest.param((2, 1), "cancelled", id="where it came from, in another order"),
        pytest.param((3, 4), "superseded", id="part of the target"),
        pytest.param((4, 3, 1), "superseded", id="the target, in an order nobody asked for"),
        pytest.param((5, 6, 7), "superseded", id="somewhere else"),
        pytest.param(None, "vanished", id="the topic is gone"),
    ],
)
def test_the_shape_it_ends_in_tells_how_it_ended(replicas: Brokers | None, outcome: str) -> None:
    tracker = moving(MOVING)
    end = ended(tracker, replicas)
    assert end == EndedReassignment(
        topic=PARTITION.topic,
        partition=PARTITION.partition,
        outcome=outcome,
        at_ms=9_000,
        original=(1, 2),
        target=(3, 4, 1),
        replicas=replicas,
        seconds=8.0,
    )
    assert tracker.ongoing == {}
    assert tracker.ended == [end]
    assert tracker.ended_counts == {outcome: 1}
    assert outcome in OUTCOMES.words


def test_a_cancelled_removal_is_known_by_its_replicas_in_whatever_order() -> None:
    """[1, 2, 3] → [1, 3] cancelled leaves [1, 3, 2], which is all that can be seen before, too."""
    tracker = moving(observation((1, 3, 2), removing=(2,), isr=(1,)))
    tracker.ongoing[PARTITION].original = (1, 2, 3)
    assert tracker.end(PARTITION, (1, 3, 2), (1,), 2_000, 7) is None
    end = tracker.end(PARTITION, (1, 3, 2), (1,), 2_000 + SETTLED_MS, 7)
    assert end is not None
    assert end.outcome == "cancelled"


def test_a_cancellation_after_a_change_of_target_reverts_it_only_in_part() -> None:
    """[1] → [4, 5], then [4, 6], then cancelled: three replicas where there was one."""
    first = observation((4, 5, 1), (4, 5), (1,), isr=(1,))
    second = observation((4, 6, 1, 5), (6,), (1, 5), isr=(1,), as_of_ms=2_000)
    end = moving(first, second)
    over = end.end(PARTITION, (4, 1, 5), (1,), 9_000, 8)
    assert over is not None
    assert (over.outcome, over.original, over.target) == ("reverted-partial", (1,), (4, 6))


def test_a_reassignment_that_was_given_another_target_completes_there() -> None:
    second = observation((5, 1, 2, 3, 4), (5,), (2, 3, 4), as_of_ms=2_000)
    assert ended(moving(MOVING, second), (5, 1)).outcome == "completed"
    assert ended(moving(MOVING, second), (1, 2)).outcome == "cancelled"
    assert ended(moving(MOVING, second), (1, 2, 3, 4)).outcome == "reverted-partial"


def test_a_broker_in_both_lists_goes_when_it_completes() -> None:
    both = observation((4, 5, 2, 1, 3, 6), (4, 5, 6), (1, 3, 6), isr=(1, 2, 3), as_of_ms=2_000)
    first = observation((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3), isr=(1, 2, 3))
    assert ended(moving(first, both), (4, 5, 2)).outcome == "completed"
    assert ended(moving(first, both), (2, 1, 3)).outcome == "cancelled"
    assert ended(moving(first, both), (4, 5, 2, 6)).outcome == "superseded"


def test_replicas_that_are_only_added_are_there_once_they_are_in_sync() -> None:
    """The brokers show the same replicas before the end, after it, and some time after a cancel."""
    adding = observation((1, 2), (2,), (), isr=(1,))
    tracker = moving(adding)
    assert tracker.end(PARTITION, (1, 2), (1,), 2_000, 7) is None
    assert tracker.ongoing[PARTITION].phase(KRAFT) == "propagating"
    end = tracker.end(PARTITION, (1, 2), (1, 2), 3_000, 7)
    assert end is not None
    assert end.outcome == "completed"
    tracker = moving(adding)
    assert tracker.end(PARTITION, (1, 2), (1,), 2_000, 7) is None
    end = tracker.end(PARTITION, (1,), (1,), 3_000, 8)
    assert end is not None
    assert end.outcome == "cancelled"


@pytest.mark.parametrize(
    ("replicas", "isr", "epoch", "waits_ms"),
    [
        pytest.param((3, 4, 1, 2), (1, 2), 7, SETTLED_MS, id="all the movement's replicas"),
        pytest.param((1, 2), (1, 2), 7, OLDER_MS, id="those before it"),
        pytest.param((1, 2), (1, 2), 5, OLDER_MS, id="those before it, and an older leader"),
        pytest.param((3, 4, 1, 2), (1, 2), 5, OLDER_MS, id="an older leader"),
        pytest.param((3, 4, 1), (3, 4, 1), 7, OLDER_MS, id="its target, as it was once before"),
    ],
)
def test_brokers_that_show_what_was_before_the_end_do_not_end_it(
    replicas: Brokers, isr: Brokers, epoch: int, waits_ms: int
) -> None:
    tracker = moving(MOVING, replace(MOVING, as_of_ms=1_500))
    for at_ms in (2_000, 4_000, 2_000 + waits_ms - 1):
        assert tracker.end(PARTITION, replicas, isr, at_ms, epoch) is None
    assert tracker.ongoing[PARTITION].unlisted_ms == 2_000
    end = tracker.end(PARTITION, (3, 4, 1), (3, 4, 1), 2_000 + waits_ms, 8)
    assert end is not None
    assert end.outcome == "completed"


def test_the_last_observation_may_have_met_the_end_between_the_list_and_the_metadata() -> None:
    met = replace(MOVING, isr=(4, 3, 1), leader=3, leader_epoch=8, as_of_ms=1_500)
    end = moving(MOVING, met).end(PARTITION, (3, 4, 1), (3, 4, 1), 2_000, 8)
    assert end is not None
    assert end.outcome == "completed"
    only = moving(met)
    assert only.end(PARTITION, (3, 4, 1), (3, 4, 1), 2_000, 8) is None
    end = only.end(PARTITION, (3, 4, 1), (3, 4, 1), 2_000 + SETTLED_MS, 8)
    assert end is not None
    assert end.outcome == "completed"


def test_what_the_brokers_show_for_long_is_the_end() -> None:
    tracker = moving(MOVING)
    assert tracker.end(PARTITION, (3, 4, 1, 2), (1, 2), 2_000) is None
    end = tracker.end(PARTITION, (3, 4, 1, 2), (1, 2), 2_000 + SETTLED_MS)
    assert end is not None
    assert end.outcome == "superseded"


@pytest.mark.parametrize("epoch", [0, 7])
def test_a_leader_epoch_that_does_not_rise_is_that_of_another_topic_of_the_name(
    epoch: int,
) -> None:
    tracker = moving(MOVING, replace(MOVING, as_of_ms=1_500))
    assert tracker.end(PARTITION, (3, 4, 1), (3, 4, 1), 2_000, epoch) is None
    end = tracker.end(PARTITION, (3, 4, 1), (3, 4, 1), 2_000 + OLDER_MS, epoch)
    assert end is not None
    assert (end.outcome, end.replicas) == ("vanished", None)


def test_a_reassignment_that_is_listed_again_starts_to_wait_anew() -> None:
    tracker = moving(MOVING)
    assert tracker.end(PARTITION, (1, 2), (1, 2), 2_000, 7) is None
    tracker.apply(replace(MOVING, as_of_ms=20_000))
    assert tracker.end(PARTITION, (1, 2), (1, 2), 21_000 + OLDER_MS, 7) is None


@pytest.mark.parametrize(
    ("replicas", "outcome"), [((1, 2), "cancelled"), ((3, 4, 1, 2), "superseded")]
)
def test_a_caller_that_is_certain_of_the_end_does_not_wait(replicas: Brokers, outcome: str) -> None:
    tracker = moving(MOVING, replace(MOVING, as_of_ms=1_500))
    assert tracker.end(PARTITION, replicas, (1, 2), 2_000, 7) is None
    end = tracker.end(PARTITION, replicas, (1, 2), 2_000, 7, certain=True)
    assert end is not None
    assert end.outcome == outcome


def test_without_epochs_the_replicas_tell() -> None:
    tracker = moving(replace(MOVING, leader_epoch=None))
    end = tracker.end(PARTITION, (1, 2), (1, 2), 2_000, 7)
    assert end is not None
    assert end.outcome == "cancelled"


def test_no_replicas_at_all_end_nothing() -> None:
    tracker = moving(MOVING)
    assert tracker.end(PARTITION, (), (), 9_000) is None
    assert list(tracker.ongoing) == [PARTITION]


def test_the_end_of_what_was_never_seen_moving_is_nothing() -> None:
    tracker = ReassignmentTracker()
    assert tracker.end(PARTITION, (1, 2), (1, 2), 0) is None
    assert tracker.ended == []


@pytest.mark.parametrize(
    ("then", "outcome"),
    [
        pytest.param(
            observation((5, 6, 3, 4, 1), (5, 6), (3, 4, 1)), "completed", id="it completed"
        ),
        pytest.param(observation((5, 6, 1, 2), (5, 6), (1, 2)), "cancelled", id="it was cancelled"),
        pytest.param(observation((5, 8), (5,), (8,)), "superseded", id="a topic of the same name"),
    ],
)
def test_a_reassignment_that_follows_at_once_ends_the_one_before(
    then: ReassignmentRecord, outcome: str
) -> None:
    tracker = moving(MOVING)
    end = tracker.apply(replace(then, as_of_ms=5_000))
    assert end is not None
    assert (end.outcome, end.at_ms, end.seconds) == (outcome, 5_000, 4.0)
    after = tracker.ongoing[PARTITION]
    assert (after.since_ms, after.first.as_of_ms, len(after.observations)) == (5_000, 5_000, 1)
    assert set(after.original) == set(then.replicas) - set(then.adding)


def test_one_that_adds_after_one_that_added_follows_it_if_that_is_in_sync() -> None:
    """[1] → [1, 2], then [1, 2, 3]: whether 2 got in sync before the second request is not known."""
    first = observation((1, 2), (2,), (), isr=(1,))
    then = observation((1, 2, 3), (3,), (), as_of_ms=5_000)
    tracker = moving(first)
    end = tracker.apply(replace(then, isr=(1, 2)))
    assert end is not None
    assert (end.outcome, tracker.ongoing[PARTITION].original) == ("superseded", (1, 2))
    retargeted = moving(first, replace(then, isr=(1,)))
    assert retargeted.ongoing[PARTITION].original == (1,)
    assert ended(retargeted, (1, 2)).outcome == "reverted-partial"


def test_with_zookeeper_another_target_drops_what_the_first_one_added() -> None:
    second = observation((5, 1, 2), (5,), (2,), as_of_ms=2_000)
    tracker = moving(MOVING, second, cluster=ClusterRecord(2, 0, zookeeper=True))
    assert (tracker.ongoing[PARTITION].original, tracker.ended) == ((1, 2), [])
    assert ended(tracker, (1, 2)).outcome == "cancelled"


def test_a_partition_that_moves_again_is_a_reassignment_of_its_own() -> None:
    tracker = moving(MOVING)
    ended(tracker, (3, 4, 1))
    again = replace(MOVING, as_of_ms=30_000)
    tracker.apply(again)
    assert tracker.ongoing[PARTITION].first == again


@pytest.mark.parametrize("kept", [1, 3])
def test_only_the_last_reassignments_that_ended_are_kept_newest_last_and_all_are_counted(
    kept: int,
) -> None:
    tracker = ReassignmentTracker(kept=kept)
    for number in range(5):
        tracker.apply(MOVING)
        tracker.end(PARTITION, None, (), number)
    assert [end.at_ms for end in tracker.ended] == list(range(5))[-kept:]
    assert tracker.ended_counts == {"vanished": 5}
