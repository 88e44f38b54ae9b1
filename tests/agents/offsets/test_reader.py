"""The offsets reader: when it stands still, and garbage collections while it reads a log."""

from __future__ import annotations

import gc

import pytest

from caughtup.agents.offsets.reader import is_stuck, rare_collections


def test_garbage_is_searched_for_as_usual_afterwards() -> None:
    before = gc.get_threshold()
    with rare_collections():
        collected = gc.get_stats()[0]["collections"]
        for _ in range(20):
            assert len([[] for _ in range(2_000)]) == 2_000
        assert gc.get_stats()[0]["collections"] == collected
    assert gc.get_threshold() == before


@pytest.mark.parametrize(
    ("behind", "answered_ms", "expected"),
    [
        (5, 9_000, True),
        (0, 9_000, False),
        (5, 1_000, False),  # the brokers are to blame
        (5, None, False),
    ],
)
def test_a_reader_stands_still_that_gets_nothing_of_brokers_that_answer(
    behind: int, answered_ms: int | None, *, expected: bool
) -> None:
    assert is_stuck(behind, answered_ms, 10_000) == expected
