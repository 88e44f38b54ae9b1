"""Groups that have nothing to read aren't assessed again, and fare as if they were."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.ids import TopicPartition
from caughtup.models.lag.assessed import Assessed
from caughtup.models.lag.assessment import Assessments
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState
from tests.support.changes import Change, changes
from tests.support.groups.records import START_MS, commit, consumer_generation, group_tombstone
from tests.support.sizes import daily
from tests.support.states import cluster_state, read

GROUP = "readers"
ZERO, ONE = TopicPartition("clicks", 0), TopicPartition("clicks", 1)


def anew(state: ClusterState, now_ms: int, read_ms: int | None) -> Assessments:
    """Assess everything, by what is known now, and by what only the past tells.

    That is since when partitions wait for a commit, and which groups read uncommitted records.
    """
    made = Assessments()
    made.uncommitted.update(state.assessments.uncommitted)
    made.reads_uncommitted.update(state.assessments.reads_uncommitted)
    for group in state.group_names():
        membership = state.groups.membership(group)
        for _ in made.assess(group, state.commits, membership, state.ends, now_ms, read_ms):
            pass
    return made


def assert_alike(state: ClusterState, other: Assessments) -> None:
    ours = state.assessments
    assert ours.verdicts == other.verdicts
    for group in state.group_names():
        assert set(ours.behind(group)) == set(other.behind(group))
        membership = state.groups.membership(group)
        owned = () if membership is None else membership.owners
        for partition in (*state.commits.of(group), *owned):
            assert alike(ours.find(group, partition), other.find(group, partition))


def alike(ours: Assessed | None, other: Assessed | None) -> bool:
    """Return whether two assessments are the same, but for the rounding of an age that has grown."""
    if ours is None or other is None or ours.lag_seconds is None:
        return ours == other
    return ours._replace(
        lag_seconds=other.lag_seconds
    ) == other and ours.lag_seconds == pytest.approx(other.lag_seconds)


def round_of(state: ClusterState, now_ms: int, read_ms: int | None = None) -> int:
    """Assess every group as the assessor does; return in how many steps."""
    steps = sum(1 for group in state.group_names() for _ in state.assess(group, now_ms, read_ms))
    state.forget_gone()
    return steps


@settings(print_blob=True, deadline=None, max_examples=daily(20, 50))
@given(
    st.lists(
        st.tuples(changes, changes, st.integers(0, 2_000_000), st.none() | st.integers(0, 60_000)),
        max_size=5,
    )
)
def test_who_is_not_assessed_again_fares_as_if_it_were(
    rounds: list[tuple[list[Change], list[Change], int, int | None]],
) -> None:
    state, now_ms = cluster_state(), START_MS
    for made, meanwhile, passed_ms, unread_ms in rounds:
        for change in made:
            change(state)
        now_ms += passed_ms
        read_ms = None if unread_ms is None else now_ms - unread_ms
        round_of(state, now_ms, read_ms)
        assert_alike(state, anew(state, now_ms, read_ms))
        # What changes between two steps counts by the next round.
        waiting = iter(meanwhile)
        for group in state.group_names():
            for _ in state.assess(group, now_ms, read_ms):
                next(waiting, lambda _: None)(state)
        for left in waiting:
            left(state)
        round_of(state, now_ms + 2_000, read_ms)
        assert_alike(state, anew(state, now_ms + 2_000, read_ms))
    assert not state.faults.totals


def at_rest() -> ClusterState:
    """A group that has read a topic of two partitions, and was assessed."""
    state = cluster_state()
    for partition in (ZERO, ONE):
        state.apply_ends(partition, EndOffsets(0, 9, 9, START_MS))
    read(state, *(commit(number, 9, topic="clicks", group=GROUP, at_ms=1) for number in (0, 1)))
    assert round_of(state, START_MS) > 0
    return state


def test_who_has_nothing_to_read_is_assessed_once() -> None:
    state = at_rest()
    before = state.assessments.verdicts[GROUP]
    assert round_of(state, START_MS + 3_600_000) == 0
    read(state, commit(0, 9, topic="clicks", group=GROUP, at_ms=2))  # the same offset
    state.apply_ends(TopicPartition("others", 0), EndOffsets(0, 9, 9, START_MS))
    assert round_of(state, START_MS + 3_600_000) == 0
    assert state.assessments.verdicts[GROUP] is before


def test_the_age_of_what_is_to_read_grows_though_nothing_is_assessed_again() -> None:
    state = at_rest()
    state.apply_ends(ONE, EndOffsets(0, 10, 10, START_MS + 1_000))
    ages, steps = [], []
    for second in (2, 3):
        steps.append(round_of(state, START_MS + 1_000 * second))
        found = state.assessments.find(GROUP, ONE)
        assert found is not None
        ages.append(found.lag_seconds)
    assert ages == [1.5, 2.5]
    assert steps == [2, 0]


def test_whatever_may_change_how_a_group_fares_has_it_assessed_again() -> None:
    topic = {"topic": "clicks", "group": GROUP}
    late_ms = START_MS + 2 * CLOCK_ALLOWANCE_MS
    changes: list[Change] = [
        lambda state: read(state, commit(0, 10, **topic)),
        lambda state: read(state, commit(2, 1, **topic)),
        lambda state: read(state, commit(0, None, **topic)),
        lambda state: state.apply_ends(ZERO, EndOffsets(0, 9, 9, late_ms)),
        lambda state: state.apply_ends(ZERO, None),
        lambda state: read(state, consumer_generation(1, {"c": (ONE,)}, group=GROUP)),
        lambda state: state.assessments.fail(GROUP, ValueError()),
    ]
    for change in changes:
        state = at_rest()
        change(state)
        assert round_of(state, START_MS) > 0


@pytest.mark.parametrize("ends", [None, EndOffsets(0, 30, 30, START_MS + 2_000)])
def test_the_log_of_a_partition_without_a_commit_counts_as_any_other(
    ends: EndOffsets | None,
) -> None:
    state = at_rest()
    state.apply_ends(TopicPartition("clicks", 2), EndOffsets(0, 5, 5, START_MS))
    owners = (ZERO, ONE, TopicPartition("clicks", 2))
    read(state, consumer_generation(1, {"c": owners}, group=GROUP))
    round_of(state, START_MS + 1_000)
    state.apply_ends(TopicPartition("clicks", 2), ends)
    round_of(state, START_MS + 2_000)
    assert_alike(state, anew(state, START_MS + 2_000, None))


def test_a_commit_beyond_the_end_is_out_of_range_once_a_sample_is_newer() -> None:
    state = at_rest()
    read(state, commit(0, 20, topic="clicks", group=GROUP, at_ms=START_MS))
    round_of(state, START_MS)
    assert state.assessments.verdicts[GROUP].verdict == "ok"
    assert round_of(state, START_MS) == 0
    state.apply_ends(ZERO, EndOffsets(0, 9, 9, START_MS + CLOCK_ALLOWANCE_MS + 1))
    round_of(state, START_MS)
    assert state.assessments.verdicts[GROUP].verdict == "rewound"


def test_a_group_that_comes_back_is_assessed_again() -> None:
    state = at_rest()
    read(state, *(commit(number, None, topic="clicks", group=GROUP) for number in (0, 1)))
    read(state, group_tombstone(GROUP))
    assert round_of(state, START_MS) == 0
    assert GROUP not in state.assessments.verdicts
    read(state, commit(0, 9, topic="clicks", group=GROUP, at_ms=1))
    assert round_of(state, START_MS) > 0
    assert state.assessments.verdicts[GROUP].verdict == "ok"


def test_time_alone_has_partitions_with_lag_assessed_again_only_when_it_changes_a_verdict() -> None:
    state = at_rest()
    state.apply_ends(ONE, EndOffsets(0, 10, 10, START_MS + 1_000))
    now_ms, hour_ms, steps = START_MS + 2_000, 3_600_000, 0
    while now_ms < START_MS + hour_ms:
        steps += round_of(state, now_ms)
        assert_alike(state, anew(state, now_ms, None))
        now_ms += 2_000
    assert 0 < steps < hour_ms // 2_000 // 5
