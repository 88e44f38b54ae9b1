"""The blocks that hold the steps before the last."""

from __future__ import annotations

from array import array
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.commits.steps import FEWEST_STEPS_KEPT, StepBlocks
from caughtup.models.histories.commits import STEP_NUMBERS

histories = st.lists(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(-1, 99)), max_size=9),
    max_size=12,
)


def newest(steps: list[tuple[int, int, int]], kept: int) -> list[tuple[int, int, int]]:
    """Leave out old steps, the plain way: the longest of their waits stays with the next one."""
    if len(steps) <= kept:
        return steps
    surplus = len(steps) - kept
    offset, at_ms, _ = steps[surplus]
    return [
        (offset, at_ms, max(wait for _, _, wait in steps[: surplus + 1])),
        *steps[surplus + 1 :],
    ]


@settings(print_blob=True, deadline=None)
@given(histories)
def test_the_more_histories_there_are_the_fewer_steps_each_keeps(
    made: list[list[tuple[int, int, int]]],
) -> None:
    blocks = StepBlocks(((3, 8), (6, 7)), 2)
    expected = []
    for steps in made:
        slot = blocks.store(None, array("q", [number for step in steps for number in step]))
        expected.append(newest(steps, blocks.steps_kept))
        expected = [newest(each, blocks.steps_kept) for each in expected]
        assert slot == len(expected) - 1
    assert blocks.steps_kept == (
        8 if len(made) <= 3 else 7 if len(made) <= 6 else FEWEST_STEPS_KEPT
    )
    waits = blocks.waits(np.arange(len(made))).tolist()
    for slot, steps in enumerate(expected):
        known = [wait for _, _, wait in steps]
        assert waits[slot] == known + [-1] * (blocks.steps_kept - len(known))
        assert blocks.load(slot) == array("q", [number for step in steps for number in step])


@settings(print_blob=True, deadline=None)
@given(histories.filter(bool), st.data())
def test_a_block_that_is_narrowed_late_has_what_it_would_have_had_at_once(
    made: list[list[tuple[int, int, int]]], data: st.DataObject
) -> None:
    blocks = StepBlocks(((3, 8), (6, 7)), 2)
    expected: list[list[tuple[int, int, int]]] = []
    for steps in made:
        numbers = array("q", [number for step in steps for number in step])
        blocks.store(None, numbers)
        expected = [newest(each, blocks.steps_kept) for each in (*expected, steps)]
        slot = data.draw(st.integers(0, len(expected) - 1))
        if data.draw(st.booleans()):
            blocks.store(slot, numbers)
            expected[slot] = newest(steps, blocks.steps_kept)
        of_slot = [number for step in expected[slot] for number in step]
        assert blocks.load(slot) == array("q", of_slot)


def test_of_many_blocks_few_are_narrowed_at_once() -> None:
    blocks = StepBlocks(((64, 8),), 8)
    one = array("q", range(8 * STEP_NUMBERS))
    for _ in range(64):
        blocks.store(None, one)
    wide = [8]
    while wide[-1]:
        blocks.store(None, one)
        wide.append(blocks._widths.count(8))
    assert all(before - after <= 2 for before, after in pairwise(wide))
    assert len(wide) < 16


def test_a_slot_that_is_given_back_is_the_next_one() -> None:
    blocks = StepBlocks()
    one = array("q", range(STEP_NUMBERS))
    slots = [blocks.store(None, one) for _ in range(3)]
    blocks.free(slots[1])
    assert len(blocks) == 2
    assert blocks.store(None, one * 2) == slots[1]
    assert blocks.store(slots[1], one) == slots[1]
    assert blocks.load(slots[1]) == one
    assert len(blocks) == 3
