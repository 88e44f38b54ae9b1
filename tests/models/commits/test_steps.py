"""The blocks that hold the steps before the last."""

from __future__ import annotations

from array import array
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.commits.steps import FEWEST_STEPS_KEPT, StepBlocks
from caughtup.models.histories.commits import STEP_NUMBERS, CommitHistory
from tests.support.sizes import daily

Step = tuple[int, int, int]
TODAY_MS = 1_790_000_000_000
offsets = st.integers(-(1 << 63), (1 << 63) - 2)

histories = st.lists(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(-1, 99)), max_size=9),
    max_size=12,
)


def newest(steps: list[Step], kept: int) -> list[Step]:
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
    made: list[list[Step]],
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
    made: list[list[Step]], data: st.DataObject
) -> None:
    blocks = StepBlocks(((3, 8), (6, 7)), 2)
    expected: list[list[Step]] = []
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


#: The longest wait for which a block has room, and what lies around it.
LONGEST_MS = (1 << 31) - 1
USUAL_MS = [0, 1_000, *range(TODAY_MS, TODAY_MS + 1_200_000, 30_000)]
USUAL_WAITS = [-1, 0, 30_000, LONGEST_MS]
OTHER_MS = [-(1 << 63), -(1 << 62), -1, 1 << 62, (1 << 63) - 1]
OTHER_WAITS = [-(1 << 63), -LONGEST_MS - 2, LONGEST_MS + 1, 1 << 40, 1 << 62, (1 << 63) - 1]


def steps_in(times: list[int], waits: list[int]) -> st.SearchStrategy[list[Step]]:
    """Return histories: their times ascend."""
    step = st.tuples(
        st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from(times), st.sampled_from(waits)
    )
    lists = [
        st.lists(step, min_size=count, max_size=count, unique_by=lambda one: one[1])
        for count in (0, 1, 6, 15, 17)
    ]
    return st.one_of(lists).map(lambda made: sorted(made, key=lambda one: one[1]))


usual_steps = steps_in(USUAL_MS, USUAL_WAITS)
any_steps = steps_in(USUAL_MS + OTHER_MS, USUAL_WAITS + OTHER_WAITS)


def numbers_of(steps: list[Step]) -> array[int]:
    return array("q", [number for step in steps for number in step])


def with_a_step(steps: list[Step], step: Step, next_ms: int, kept: int) -> list[Step]:
    """Add a step, the plain way: the group has committed at ``next_ms`` since."""
    history = CommitHistory.of(numbers_of([*steps, step]), step[1], None, None)
    history.add(step[0] + 1, next_ms, unread_since_ms=next_ms)
    numbers = iter(history.steps[:-STEP_NUMBERS])
    return newest(list(zip(numbers, numbers, numbers, strict=True)), kept)


@settings(print_blob=True, deadline=None, max_examples=daily(100, 500))
@given(
    st.lists(
        st.sampled_from(["new", "new", "again", "free", "append", "append", "look"]),
        min_size=8,
        max_size=24,
    ),
    st.data(),
)
def test_any_step_is_held_as_it_is(turns: list[str], data: st.DataObject) -> None:
    blocks = StepBlocks(((3, 15), (6, 7)), 2)
    expected: dict[int, list[Step]] = {}
    unusual: set[int] = set()
    for turn in ["new", *turns]:
        slot = data.draw(st.sampled_from(sorted(expected))) if expected else None
        if turn == "new" or slot is None or turn == "again":
            steps = data.draw(usual_steps | any_steps)
            slot = blocks.store(slot if turn == "again" else None, numbers_of(steps))
            assert turn == "again" or slot not in expected
            expected[slot] = steps
            for each, held in expected.items():
                expected[each] = newest(held, blocks.steps_kept)
            unusual -= {slot}
            unusual |= set() if are_usual(expected[slot]) else {slot}
        elif turn == "free":
            blocks.free(slot)
            del expected[slot]
        elif turn == "append":
            append(blocks, expected, unusual, data)
        else:
            loaded = blocks.load(slot)
            assert loaded == numbers_of(expected[slot])
            loaded.append(0)  # which is the caller's own
    assert len(blocks) == len(expected)
    slots = data.draw(st.permutations(sorted(expected)))
    for slot, waits in zip(slots, blocks.waits(np.array(slots, np.int64)).tolist(), strict=True):
        known = [wait for _, _, wait in expected[slot]]
        assert waits == known + [-1] * (blocks.steps_kept - len(known))
        assert blocks.load(slot) == numbers_of(expected[slot])


def are_usual(steps: list[Step]) -> bool:
    return all(-LONGEST_MS - 1 <= wait <= LONGEST_MS for _, _, wait in steps)


def append(
    blocks: StepBlocks, expected: dict[int, list[Step]], unusual: set[int], data: st.DataObject
) -> None:
    """Add a step to some slots, at once or else one by one, as a table does it."""
    times = data.draw(st.sampled_from([USUAL_MS, sorted(USUAL_MS + OTHER_MS)]))
    waits = data.draw(st.sampled_from([USUAL_WAITS, USUAL_WAITS + OTHER_WAITS]))
    slots, steps, next_ms = [], [], []
    for slot in data.draw(st.lists(st.sampled_from(sorted(expected)), unique=True)):
        later = [ms for ms in times if not expected[slot] or ms > expected[slot][-1][1]]
        if len(later) > 1:
            at = data.draw(st.integers(0, len(later) - 2))
            slots.append(slot)
            steps.append((data.draw(offsets), later[at], data.draw(st.sampled_from(waits))))
            next_ms.append(data.draw(st.sampled_from(later[at + 1 :])))
    added = blocks.append(
        np.array(slots, np.int64),
        np.array(steps, np.int64).reshape(-1, STEP_NUMBERS),
        np.array(next_ms, np.int64),
    )
    for slot, step, then_ms, done in zip(slots, steps, next_ms, added.tolist(), strict=True):
        times = (step[1], then_ms, *(at_ms for _, at_ms, _ in expected[slot][:1]))
        usual = slot not in unusual and are_usual([step]) and {*times} <= {*USUAL_MS}
        made = with_a_step(expected[slot], step, then_ms, blocks.steps_kept)
        assert done or not usual or not made
        if not done:
            assert blocks.load(slot) == numbers_of(expected[slot])
            assert blocks.store(slot, numbers_of(made)) == slot
            unusual -= {slot}
            unusual |= set() if are_usual(made) else {slot}
        expected[slot] = made


def test_a_step_within_the_limits_is_added_at_once_and_no_other_is_changed() -> None:
    steps = [(5, *rest) for rest in product(USUAL_MS + OTHER_MS, USUAL_WAITS + OTHER_WAITS)]
    fit = [are_usual([step]) for step in steps]
    today = (4, TODAY_MS, 30_000)
    for before, after in (([today] * len(steps), steps), (steps, [today] * len(steps))):
        blocks = StepBlocks()
        slots = np.array([blocks.store(None, numbers_of([step])) for step in before])
        assert [blocks.load(slot) for slot in slots] == [numbers_of([step]) for step in before]
        added = blocks.append(slots, np.array(after), np.full(len(steps), TODAY_MS + 1))
        assert added.tolist() == fit
        for slot, first, second, fits in zip(slots, before, after, fit, strict=True):
            assert blocks.load(slot) == numbers_of([first, second] if fits else [first])


@pytest.mark.parametrize("kept", [15, 7])
def test_a_full_history_with_a_longer_wait_gets_no_step_at_once(kept: int) -> None:
    blocks = StepBlocks(((1, kept),))
    steps = numbers_of([(at, TODAY_MS + 1_000 * at, LONGEST_MS + 1) for at in range(kept)])
    slot = blocks.store(None, numbers_of([(at, TODAY_MS + 1_000 * at, 0) for at in range(kept)]))
    blocks.store(slot, steps)
    one = np.array([(99, TODAY_MS + 99_000, 1)])
    assert not blocks.append(np.array([slot]), one, one[:, 1] + 1_000).any()
    assert blocks.load(slot) == steps


def test_the_longer_wait_stays_when_the_oldest_step_goes() -> None:
    for waits in ((5, 9), (9, 5)):
        blocks = StepBlocks(((1, 2),))
        slot = blocks.store(
            None, numbers_of([(1, TODAY_MS, waits[0]), (2, TODAY_MS + 1, waits[1])])
        )
        one = np.array([(3, TODAY_MS + 2, 1)])
        assert blocks.append(np.array([slot]), one, one[:, 1] + 1).all()
        assert blocks.load(slot) == numbers_of([(2, TODAY_MS + 1, 9), (3, TODAY_MS + 2, 1)])


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
