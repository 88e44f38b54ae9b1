"""How reassignments fare, as last worked out; and throttles that are left over."""

from __future__ import annotations

from msgspec.structs import replace

from caughtup.models.reassignments.watch import ReassignmentWatch
from tests.support.reassignments.reassigning import (
    APART_MS,
    DEAD,
    FINE,
    NEW,
    ORPHANED_MS,
    SEEN_MS,
    cluster_observation,
    ongoing_observation,
    reassigning,
)


def test_each_reassignment_is_worked_out_in_a_step_of_its_own_in_order() -> None:
    state, watch = reassigning(), ReassignmentWatch()
    tracker = state.reassignments
    steps = watch.assess(tracker, SEEN_MS)
    assert next(steps) == DEAD
    assert watch.find(FINE, tracker.ongoing[FINE]) is None
    assert list(steps) == [FINE, NEW]
    assessed = watch.find(FINE, tracker.ongoing[FINE])
    assert assessed is not None
    assert assessed.verdict == "moving"


def test_what_comes_and_goes_between_two_steps_harms_nothing() -> None:
    state, watch = reassigning(), ReassignmentWatch()
    tracker = state.reassignments
    steps = watch.assess(tracker, SEEN_MS)
    next(steps)
    tracker.end(FINE, (2,), (2,), SEEN_MS)
    tracker.apply(ongoing_observation(FINE._replace(topic="zzz"), 2, SEEN_MS, 0))
    assert list(steps) == [NEW]


def test_a_reassignment_that_ended_is_forgotten_and_a_new_one_of_the_partition_starts_anew() -> (
    None
):
    state, watch = reassigning(), ReassignmentWatch()
    tracker = state.reassignments
    list(watch.assess(tracker, SEEN_MS))
    ended = tracker.ongoing[DEAD]
    tracker.end(DEAD, (1,), (1,), SEEN_MS)
    tracker.apply(ongoing_observation(DEAD, 5, SEEN_MS + APART_MS, 0))
    assert watch.find(DEAD, tracker.ongoing[DEAD]) is None
    assert watch.find(DEAD, ended) is not None
    tracker.end(DEAD, (1,), (1,), SEEN_MS)
    list(watch.assess(tracker, SEEN_MS))
    assert watch.find(DEAD, ended) is None


def test_a_throttle_is_left_over_once_nothing_moved_for_long_and_not_while_it_is_needed() -> None:
    watch = reassigning().reassignment_watch
    # Something else moves: an hour has to go by.
    assert watch.orphaned(SEEN_MS + 500_000) == ()
    names = [(throttle.kind, throttle.name) for throttle in watch.orphaned(ORPHANED_MS)]
    assert names == [("broker", "6"), ("topic", "left")]


def test_a_throttle_that_is_taken_off_is_left_over_no_more() -> None:
    state = reassigning()
    bare = cluster_observation(ORPHANED_MS)
    brokers = {
        broker: observation for broker, observation in (bare.brokers or {}).items() if broker != 6
    }
    cleared = replace(bare, brokers=brokers, throttles={})
    state.reassignments.apply_cluster(cleared)
    list(state.reassignment_watch.assess(state.reassignments, ORPHANED_MS))
    assert state.reassignment_watch.orphaned(ORPHANED_MS) == ()
