"""What observations show of one replica's copy."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from caughtup.models.reassignments.replica_progress import observation_interval_ms, replica_progress
from caughtup.models.records.reassignments import ReassignmentRecord
from tests.support.reassignments.one_reassignment import BYTES, HEAD, an_observation, observations

WINDOW = (60_000, 180_000)


def test_nothing_is_known_of_a_replica_that_nobody_tells_of() -> None:
    progress = replica_progress(observations(5, lambda step: an_observation(step, {})), 4, *WINDOW)
    assert progress.samples == 0
    assert progress.behind is None
    assert progress.closing is None


def test_a_copy_has_a_rate_of_its_own_and_one_that_closes() -> None:
    seen = observations(10, lambda s: an_observation(s, {4: 3_000 * s}, head=HEAD + 1_000 * s))
    progress = replica_progress(seen, 4, *WINDOW)
    assert progress.behind == HEAD + 9_000 - 27_000
    assert progress.behind_exact
    assert progress.closing is not None
    assert progress.closing.per_second == pytest.approx(200)
    assert progress.rate == pytest.approx(300)
    assert progress.growth == pytest.approx(100)
    assert progress.rate_bytes == pytest.approx(300 * BYTES)
    assert progress.bytes_behind == progress.behind * BYTES
    assert progress.stands_since_ms == progress.seen_ms == 90_000
    assert progress.falls_back is None


def test_standing_counts_from_when_there_was_something_to_copy() -> None:
    def at(step: int) -> ReassignmentRecord:
        return an_observation(step, {4: HEAD}, head=HEAD if step < 5 else HEAD + 7)

    progress = replica_progress(observations(8, at), 4, *WINDOW)
    assert progress.stands_since_ms == 40_000
    assert progress.behind == 7


def test_time_in_sync_offline_or_without_a_leader_is_no_standing() -> None:
    for apart in ({"offline": (4,)}, {"isr": (1, 2, 3, 4)}, {"leader": None}):
        seen = observations(6, lambda step: an_observation(step, {4: 5}))
        seen[3] = replace(seen[3], **apart)
        assert replica_progress(seen, 4, *WINDOW).stands_since_ms == 30_000


def test_a_copy_is_near_when_it_has_what_the_leader_had_an_observation_ago() -> None:
    def at(step: int) -> ReassignmentRecord:
        return an_observation(
            step, {4: HEAD + 100 * (step - 1) if step > 2 else 0}, head=HEAD + 100 * step
        )

    progress = replica_progress(observations(7, at), 4, *WINDOW)
    assert progress.near_since_ms == 30_000
    assert progress.near_observations == 4
    assert progress.behind == 100


def test_rates_are_of_the_copy_since_it_last_went_back() -> None:
    seen = observations(
        10, lambda s: an_observation(s, {4: 3_000 * s if s < 5 else 1_000 * (s - 4)})
    )
    progress = replica_progress(seen, 4, *WINDOW)
    assert progress.drops == 1
    assert progress.rate == pytest.approx(100)


def test_the_jump_to_the_logs_start_is_no_step_of_a_copy() -> None:
    seen = observations(6, lambda s: an_observation(s, {4: 900_000 + 10 * s if s else 0}))
    assert replica_progress(seen, 4, *WINDOW).longest_step == 10


def test_a_distance_that_grows_is_observed_over_the_long_run() -> None:
    seen = observations(30, lambda s: an_observation(s, {4: 100 * s}, head=HEAD + 300 * s))
    falls_back = replica_progress(seen, 4, *WINDOW).falls_back
    assert falls_back is not None
    assert falls_back.per_second == pytest.approx(20)
    assert falls_back.span_seconds == pytest.approx(180)


def test_observations_are_apart_by_the_longest_of_the_last_three_waits() -> None:
    seen = [an_observation(step, {}) for step in (0, 5, 6, 8, 9)]
    assert observation_interval_ms(seen) == 20_000
    assert observation_interval_ms(seen[:1]) == 0
