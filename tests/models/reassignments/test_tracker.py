"""Reassignments over time: what is left, progress, ISR joins, which observations are kept."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments import tracker as reassignment
from caughtup.models.reassignments.tracker import (
    HISTORY_MS,
    JOINS,
    LEAST_OBSERVATIONS,
    OBSERVATIONS,
    ReassignmentTracker,
    TrackedReassignment,
)
from caughtup.models.records.reassignments import (
    ClusterRecord,
    ReassignmentRecord,
    offsets_remaining,
)
from tests.support.reassignments import observations

PARTITION = observations.MOVING.topic_partition
MOVING = replace(observations.MOVING, log_ends={1: 1_000, 2: 1_000, 3: 400, 4: 900})


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
        pytest.param({"isr": (1, 2, 9)}, False, id="a broker it doesn't wait for joined"),
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
    tracked = tracker.ongoing[PARTITION]
    assert (tracked.first, tracked.latest) == (MOVING, later)
    assert tracked.progressed_ms == (5_000 if progressed else 1_000)


def tracked(*observations: ReassignmentRecord) -> TrackedReassignment:
    tracker = ReassignmentTracker()
    for observation in observations:
        tracker.apply(observation)
    return tracker.ongoing[PARTITION]


def at(as_of_ms: int, **change: Any) -> ReassignmentRecord:
    return replace(MOVING, as_of_ms=as_of_ms, **change)


def test_a_broker_that_answers_again_did_not_copy_meanwhile() -> None:
    """Its silence must not make a copy that stands still look alive."""
    unknown = {1: 1_000, 2: 1_000, 4: 900}
    silent_now_and_then = (at(ms, log_ends=unknown) for ms in (2_000, 4_000))
    first, second = silent_now_and_then
    stuck = tracked(MOVING, first, at(3_000), second, at(5_000))
    assert stuck.progressed_ms == 1_000
    went_on = at(6_000, log_ends={**unknown, 3: 401})
    assert tracked(MOVING, first, went_on).progressed_ms == 6_000


def test_metadata_that_is_missing_for_an_observation_makes_nobody_join() -> None:
    blind = at(2_000, isr=(), leader=None)
    stuck = tracked(MOVING, blind, at(3_000))
    assert (stuck.progressed_ms, stuck.isr_joins, stuck.joined) == (1_000, (), 0)
    joined = tracked(MOVING, blind, at(3_000, isr=(1, 2, 4)))
    assert (joined.progressed_ms, joined.isr_joins) == (3_000, ((3_000, 4),))


def test_joins_of_the_targets_replicas_are_kept_with_their_time() -> None:
    joins = tracked(
        MOVING,
        at(2_000, isr=(1,)),
        at(3_000, isr=(2, 1, 4)),
        at(4_000, isr=(1, 2)),
        at(5_000, isr=(1, 2, 4, 3)),
    )
    assert joins.isr_joins == ((3_000, 4), (5_000, 3), (5_000, 4))
    assert joins.joined == 3


def test_only_the_last_joins_are_kept_and_all_are_counted() -> None:
    in_and_out = [at(ms, isr=(1, 2, 4) if ms % 2 else (1, 2)) for ms in range(2, 2 * JOINS + 20)]
    joins = tracked(at(1), *in_and_out)
    assert (len(joins.isr_joins), joins.joined) == (JOINS, JOINS + 9)
    assert joins.isr_joins[-1] == (2 * JOINS + 19, 4)


@pytest.mark.parametrize("seconds", [1, 2, 10, 60, 1_000])
def test_observations_are_kept_for_a_quarter_of_an_hour_and_the_newest_lie_closest(
    seconds: int,
) -> None:
    interval = seconds * 1_000
    observations = [at(1_000 + number * interval) for number in range(1_500)]
    kept = tracked(*observations)
    times = [observation.as_of_ms for observation in kept.observations]
    assert kept.first == observations[0]
    assert kept.latest == observations[-1]
    assert times == sorted(set(times))
    assert len(times) <= OBSERVATIONS
    assert times[-1] - times[0] <= HISTORY_MS
    newest = max(1, min(OBSERVATIONS // 2, HISTORY_MS // interval))
    assert times[-newest:] == [observation.as_of_ms for observation in observations[-newest:]]
    assert times[-1] - times[0] > 0.9 * HISTORY_MS - interval


def test_with_many_reassignments_fewer_observations_are_kept_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reassignment, "OBSERVATIONS_OF_ALL", 400)
    for count, most in ((10, 40), (100, LEAST_OBSERVATIONS)):
        tracker = ReassignmentTracker()
        partitions = [TopicPartition("orders", number) for number in range(count)]
        for number in range(80):
            for partition in partitions:
                tracker.apply(
                    replace(MOVING, partition=partition.partition, as_of_ms=number * 5_000)
                )
        kept = tracker.ongoing[partitions[-1]].observations
        assert most // 2 < len(kept) <= most
        assert (kept[0].as_of_ms, kept[-1].as_of_ms) == (0, 79 * 5_000)


def test_a_clock_that_is_set_back_leaves_no_observation_in_the_future() -> None:
    back = tracked(at(9_000_000), at(9_005_000), at(500_000), at(505_000))
    assert [observation.as_of_ms for observation in back.observations] == [500_000, 505_000]
    assert (back.since_ms, back.progressed_ms) == (500_000, 500_000)


def test_the_same_observation_twice_is_one_observation() -> None:
    assert tracked(MOVING, MOVING, MOVING).observations == [MOVING]


def test_what_an_earlier_run_knew_counts_for_a_reassignment_that_is_new_here() -> None:
    tracker = ReassignmentTracker()
    tracker.apply(replace(MOVING, since_ms=-50_000, original=(2, 1)))
    tracker.apply(replace(at(2_000), since_ms=0, original=(7,)))
    known = tracker.ongoing[PARTITION]
    assert (known.since_ms, known.progressed_ms, known.original) == (-50_000, 1_000, (2, 1))


def test_another_target_leaves_the_original_replicas_and_the_age_what_they_were() -> None:
    retargeted = at(2_000, replicas=(5, 1, 2, 3, 4), adding=(5,), removing=(2, 3, 4))
    moved = tracked(MOVING, retargeted)
    assert (moved.original, moved.since_ms, moved.progressed_ms) == ((1, 2), 1_000, 2_000)


def test_the_phase_is_propagating_from_when_it_is_no_longer_listed() -> None:
    tracker = ReassignmentTracker()
    tracker.unlisted(PARTITION, 500)
    tracker.apply(MOVING)
    movement = tracker.ongoing[PARTITION]
    assert movement.phase(None) == "A"
    tracker.unlisted(PARTITION, 2_000)
    tracker.unlisted(PARTITION, 3_000)
    assert (movement.phase(None), movement.unlisted_ms) == ("propagating", 2_000)
    tracker.apply(at(4_000, isr=(1, 2, 3, 4)))
    assert (movement.phase(None), movement.unlisted_ms) == ("completing", None)
    assert movement.phase(ClusterRecord(2, 0, zookeeper=True)) == "B"


def quorum(at_ms: int, leader: int | None, epoch: int | None) -> ClusterRecord:
    return ClusterRecord(2, at_ms, quorum_leader=leader, quorum_epoch=epoch)


@pytest.mark.parametrize(
    ("observations", "changed_ms"),
    [
        pytest.param([], None, id="no observation"),
        pytest.param([(1, 1, 5)], None, id="one observation"),
        pytest.param([(1, 1, 5), (2, 1, 5)], None, id="the same controller"),
        pytest.param([(1, 1, 5), (2, 2, 6), (3, 2, 6)], 2, id="another one"),
        pytest.param([(1, 1, 5), (2, 1, 7)], 2, id="the same one, elected again"),
        pytest.param([(1, 1, 5), (2, None, 6), (3, None, None), (4, 1, 5)], None, id="unknown"),
        pytest.param([(1, 1, 5), (2, None, 6), (3, 2, 7)], 3, id="another one after an election"),
        pytest.param([(1, None, None), (2, 1, 5)], None, id="known only later"),
        pytest.param([(8, 1, 5), (9, 2, 6), (4, 2, 6)], 4, id="before the clock was set back"),
    ],
)
def test_a_failover_is_told_by_the_quorums_leader_and_epoch(
    observations: list[tuple[int, int | None, int | None]], changed_ms: int | None
) -> None:
    tracker = ReassignmentTracker()
    for observation in observations:
        tracker.apply_cluster(quorum(*observation))
    assert tracker.quorum_changed_ms == changed_ms
    assert tracker.cluster == (quorum(*observations[-1]) if observations else None)
