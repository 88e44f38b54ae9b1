"""A share group's position follows from its lag and the log's end, which may grow meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.asking.shares import position


@pytest.mark.parametrize(
    ("lag", "before", "after", "last", "expected"),
    [
        (0, 100, 100, None, 100),
        (30, 100, 100, None, 70),
        (30, 100, 110, None, 70),  # the log grew meanwhile
        (30, 100, 100, 60, 70),  # it went on
        (30, 100, 110, 75, 75),  # where it was, for all that is known
        (30, 100, 110, 60, 70),  # it went on, at least to 70
        (90, 100, 100, 70, 10),  # it was reset
        (200, 100, 100, None, 0),  # the log was deleted up to there
    ],
)
def test_the_position(lag: int, before: int, after: int, last: int | None, expected: int) -> None:
    assert position(lag, before, after, last) == expected


@given(
    read=st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 1_000), st.integers(0, 1_000)), max_size=20
    )
)
def test_it_never_goes_back_nor_moves_while_the_group_stands_still(
    read: list[tuple[int, int, int]],
) -> None:
    at, end, last = 0, 2_000, None
    for done, grown_before, grown_after in read:
        at += done
        before = end
        end += grown_before
        lag = end - at  # as the coordinator tells it
        end += grown_after
        found = position(lag, before, end, last)
        assert found <= at
        if last is not None:
            assert found >= last
            if not done:
                assert found == last or found == before - lag > last, (
                    "it may be told to have gone on"
                )
        last = found


@given(grown=st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 1_000)), max_size=20))
def test_a_group_that_stands_still_seems_to_go_on_only_up_to_where_it_is(
    grown: list[tuple[int, int]],
) -> None:
    at, end, last = 50, 50, None
    for grown_before, grown_after in grown:
        before = end
        end += grown_before
        last = position(end - at, before, end + grown_after, last)
        end += grown_after
        assert last <= at
