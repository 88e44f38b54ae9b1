"""Copies that share a limit, against how long they take when what is freed is dealt anew."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.throttle_rates import Copy
from caughtup.models.reassignments.throttle_shares import CopyPace, time_factors
from tests.support.sizes import daily

LEADER = ("leader", 1)


def copies(*paces: CopyPace) -> dict[Copy, CopyPace]:
    return {(TopicPartition("t", n), 4): pace for n, pace in enumerate(paces)}


def factors(*paces: CopyPace) -> list[float | None]:
    named = copies(*paces)
    found = time_factors(named, {copy: [LEADER] for copy in named})
    return [found.get(copy) for copy in named]


def test_a_copy_alone_takes_what_it_takes() -> None:
    assert factors(CopyPace(1_000, 10.0, 0.0)) == [1.0]


def test_the_longer_of_two_gets_all_when_the_shorter_is_there() -> None:
    assert factors(CopyPace(100, 10.0, 0.0), CopyPace(200, 10.0, 0.0)) == [1.0, pytest.approx(0.75)]


def test_a_copy_that_is_there_just_now_leaves_its_part_at_once() -> None:
    there, other = factors(CopyPace(0, 10.0, 0.0), CopyPace(200, 10.0, 0.0))
    assert there is None
    assert other == pytest.approx(0.5)


def test_what_the_leader_gets_is_copied_too() -> None:
    _, longer = factors(CopyPace(100, 10.0, 0.0), CopyPace(100, 10.0, 5.0))
    assert longer == pytest.approx((10 + 50 / 15) / 20)


def test_of_two_limits_the_one_that_gives_less_counts() -> None:
    named = copies(CopyPace(100, 10.0, 0.0), CopyPace(200, 10.0, 0.0))
    first, second = named
    found = time_factors(named, {first: [LEADER], second: [LEADER, ("follower", 4)]})
    assert found[second] == 1.0


def test_copies_that_do_not_gain_have_no_factor() -> None:
    assert factors(CopyPace(100, 1.0, 2.0)) == [None]


@settings(print_blob=True, deadline=None, max_examples=daily(80, 200))
@given(
    st.lists(
        st.builds(
            CopyPace,
            st.integers(0, 10**12),
            st.floats(0, 1e9),
            st.floats(0, 1e9),
        ),
        max_size=150,
    )
)
def test_nobody_is_there_later_than_alone(paces: list[CopyPace]) -> None:
    for factor in factors(*paces):
        assert factor is None or 0.0 <= factor <= 1.0


@settings(print_blob=True, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**9), st.floats(1.0, 1e6)), min_size=1, max_size=50))
def test_the_last_is_there_when_all_bytes_are_through(ways: list[tuple[int, float]]) -> None:
    paces = [CopyPace(behind, rate, 0.0) for behind, rate in ways]
    found = factors(*paces)
    last = max(
        (factor or 0.0) * (pace.seconds or 0.0) for factor, pace in zip(found, paces, strict=True)
    )
    together = sum(pace.behind for pace in paces) / sum(pace.rate for pace in paces)
    assert last == pytest.approx(together, rel=1e-6)
