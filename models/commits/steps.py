"""The steps of groups before their last one, in blocks: small enough for millions of rows.

A step is three numbers: the offset, the time of the commit (ms), and the group's wait before it
(ms, or -1), which takes 32 bits: a history with a longer wait than 24 days is kept apart. The more
histories there are, the fewer steps each keeps.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.models.histories.commits import STEP_NUMBERS, STEPS_KEPT, thinned
from caughtup.models.polls.column_reader import Ints, Rows

#: (histories, steps): up to this number of histories, each keeps these steps before its last one.
STEPS_UP_TO = ((200_000, STEPS_KEPT - 1), (600_000, 7))
FEWEST_STEPS_KEPT = 5
#: The histories in a block, and the number of blocks that are narrowed while a new one fills.
_BLOCK = 1 << 10
_NARROWED_MEANWHILE = 8
_UNKNOWN = -1
#: Longer histories, which no clock makes, are thinned one by one.
_LONGEST_MS = 1 << 52


class _Block(NamedTuple):
    """The steps of some histories: an offset and a time (ms) each, and a wait (ms, 32 bits)."""

    points: array[int]
    waits: array[int]


class _Columns(NamedTuple):
    """A block's histories × steps × (offset, time), int64, and histories × steps of waits, int32."""

    points: Ints
    waits: NDArray[np.int32]


class StepBlocks:
    """A slot for each history. ``steps_kept`` is the number of steps that a slot has room for."""

    def __init__(
        self, steps_up_to: Sequence[tuple[int, int]] = STEPS_UP_TO, block: int = _BLOCK
    ) -> None:
        self._steps_up_to = steps_up_to
        self._block = block
        self._pace = max(1, block // _NARROWED_MEANWHILE)
        self._blocks: list[_Block] = []
        #: The steps that each slot of a block has room for: ``steps_kept`` for nearly all blocks.
        self._widths: list[int] = []
        self._lengths = bytearray()
        #: By slot, all steps of the histories with a wait that is too long for a block.
        self._apart: dict[int, array[int]] = {}
        self._free: list[int] = []
        #: Blocks before this one are already narrowed to ``steps_kept``.
        self._narrowed = 0
        self.steps_kept = steps_up_to[0][1]

    def __len__(self) -> int:
        return len(self._lengths) - len(self._free)

    def load(self, slot: int) -> array[int]:
        """Return the steps in a slot, oldest first."""
        block, start = self._place(slot)
        if slot in self._apart:
            return self._apart[slot][:]
        count = self._lengths[slot]
        points = block.points[2 * start : 2 * (start + count)]
        steps = array("q", bytes(8 * STEP_NUMBERS * count))
        steps[0::STEP_NUMBERS], steps[1::STEP_NUMBERS] = points[0::2], points[1::2]
        steps[2::STEP_NUMBERS] = array("q", block.waits[start : start + count])
        return steps

    def waits(self, slots: Ints) -> Ints:
        """Return the waits before the steps in some slots (ms; int64), one row for each slot.

        Rows are as long as a slot has room for, with -1 for no step or an unknown wait.
        """
        found = np.empty((len(slots), self.steps_kept), np.int64)
        for held, at, some in self._by_block(slots):
            found[some] = held.waits[at]
        for place in np.flatnonzero(self._are_apart(slots)).tolist():
            waits = self._apart[slots.item(place)][STEP_NUMBERS - 1 :: STEP_NUMBERS]
            found[place, : len(waits)] = waits
        lengths = np.frombuffer(self._lengths, np.uint8)[slots]
        found[np.arange(self.steps_kept) >= lengths[:, None]] = _UNKNOWN
        return found

    def store(self, slot: int | None, steps: array[int]) -> int:
        """Store steps, only the newest if they are too many; return their slot, a new one for None.

        The longest wait among those left out is kept with the oldest step.
        """
        if slot is None:
            slot = self._free.pop() if self._free else self._add()
        steps = _newest(steps, self.steps_kept)
        block, start = self._place(slot)
        count = len(steps) // STEP_NUMBERS
        try:
            block.waits[start : start + count] = array("i", steps[2::STEP_NUMBERS])
        except OverflowError:
            self._apart[slot] = steps
        else:
            self._apart.pop(slot, None)
            points = array("q", bytes(16 * count))
            points[0::2], points[1::2] = steps[0::STEP_NUMBERS], steps[1::STEP_NUMBERS]
            block.points[2 * start : 2 * (start + count)] = points
        self._lengths[slot] = count
        return slot

    def append(self, slots: Ints, steps: Ints, next_ms: Ints) -> Rows:
        """Add a step to each of some slots, which differ; return which of them have got it.

        ``steps``: three numbers a row. ``next_ms``: the time of the history's last step, which is
        kept elsewhere. A full history is thinned, or loses its oldest step, as ``CommitHistory`` and
        ``store`` do it; one of which nothing but the last step would stay gets none, nor does one with
        too long a wait, before or after.
        """
        blocks = list(self._by_block(slots))  # which are narrowed then, before lengths are read
        lengths = np.frombuffer(self._lengths, np.uint8)
        length = lengths[slots].astype(np.int64)
        fits: Rows = ~self._are_apart(slots) & (steps[:, 2] == steps[:, 2].astype(np.int32))
        is_long = fits & (length + 2 > STEPS_KEPT)
        is_full = fits & ~is_long & (length == self.steps_kept)
        added: Rows = fits & ~is_long & ~is_full
        for held, at, some in blocks:
            has_room = added[some]
            place, new = (at[has_room], length[some[has_room]]), steps[some[has_room]]
            held.points[place], held.waits[place] = new[:, :2], new[:, 2]
        lengths[slots[added]] += 1
        if is_full.any():
            self._shift(slots[is_full], steps[is_full])
            added |= is_full
        if is_long.any():
            added[is_long] = self._thin(slots[is_long], steps[is_long], next_ms[is_long])
        return added

    def _are_apart(self, slots: Ints) -> Rows:
        """Return which of some slots have a history that is kept apart."""
        if not self._apart:
            return np.zeros(len(slots), np.bool_)
        return np.fromiter(map(self._apart.__contains__, slots.tolist()), np.bool_, len(slots))

    def _shift(self, slots: Ints, steps: Ints) -> None:
        """Put a step at the end of full histories; the wait of their oldest goes to the next."""
        held = np.concatenate((self._load_each(slots), steps[:, None]), axis=1)
        held[:, 1, 2] = np.maximum(held[:, 0, 2], held[:, 1, 2])
        self._store_each(slots, held[:, 1:])

    def _thin(self, slots: Ints, steps: Ints, next_ms: Ints) -> Rows:
        """Thin histories with one more step and their last one; return which were."""
        held = self._load_each(slots)
        ages = next_ms - held[:, 0, 1]  # negative if 63 bits don't hold it
        fit: Rows = (ages > 0) & (ages < _LONGEST_MS)
        last = np.zeros_like(steps)
        last[:, 1] = next_ms
        made, counts = thinned(np.concatenate((held, steps[:, None], last[:, None]), axis=1)[fit])
        stays = counts > 1
        fit[fit] = stays
        made, counts = made[stays], counts[stays] - 1
        self._store_each(slots[fit], made)
        np.frombuffer(self._lengths, np.uint8)[slots[fit]] = counts
        return fit

    def _load_each(self, slots: Ints) -> Ints:
        """Return the steps in some slots: slots × ``steps_kept`` × STEP_NUMBERS."""
        found = np.empty((len(slots), self.steps_kept, STEP_NUMBERS), np.int64)
        for held, at, some in self._by_block(slots):
            found[some, :, :2], found[some, :, 2] = held.points[at], held.waits[at]
        return found

    def _store_each(self, slots: Ints, steps: Ints) -> None:
        """Store steps in some slots, from their beginning, but not how many each has."""
        for held, at, some in self._by_block(slots):
            held.points[at, : steps.shape[1]] = steps[some, :, :2]
            held.waits[at, : steps.shape[1]] = steps[some, :, 2]

    def free(self, slot: int) -> None:
        """Free a slot."""
        self._lengths[slot] = 0
        self._apart.pop(slot, None)
        self._free.append(slot)

    def _by_block(self, slots: Ints) -> Iterator[tuple[_Columns, Ints, Ints]]:
        """Yield the steps of each block with slots of these, the places in it, and those in slots.

        The steps are not copied.
        """
        numbers, places = np.divmod(slots, self._block)
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(order)]):
            some = order[start:end]
            block = self._narrow(numbers.item(some.item(0)))
            yield _columns(block, self.steps_kept), places[some], some

    def _place(self, slot: int) -> tuple[_Block, int]:
        """Return the block of a slot, and the place of its first step there."""
        number, at = divmod(slot, self._block)
        block = self._blocks[number] if number < self._narrowed else self._narrow(number)
        return block, at * self.steps_kept

    def _add(self) -> int:
        slot = len(self._lengths)
        self._lengths.append(0)
        wanted = next(
            (kept for limit, kept in self._steps_up_to if slot < limit), FEWEST_STEPS_KEPT
        )
        if wanted < self.steps_kept:
            self.steps_kept, self._narrowed = wanted, 0
        if slot == len(self._blocks) * self._block:
            size = self._block * self.steps_kept
            self._blocks.append(_Block(array("q", bytes(16 * size)), array("i", bytes(4 * size))))
            self._widths.append(self.steps_kept)
        if not slot % self._pace and self._narrowed < len(self._blocks):
            self._narrow(self._narrowed)
            self._narrowed += 1
        return slot

    def _narrow(self, number: int) -> _Block:
        """Return a block, after removing the oldest steps beyond ``steps_kept`` of its histories.

        There may be hundreds of blocks when ``steps_kept`` falls: each is narrowed when it is used,
        or in its turn while slots are added.
        """
        before, kept = self._widths[number], self.steps_kept
        if before == kept:
            return self._blocks[number]
        first = number * self._block
        held = _columns(self._blocks[number], before)
        lengths = bytes(self._lengths[first : first + self._block]).ljust(self._block, b"\0")
        length = np.frombuffer(lengths, np.uint8).astype(np.int64)
        left_out = np.maximum(length - kept, 0)
        index = np.minimum(left_out[:, None] + np.arange(kept), before - 1)
        points = np.take_along_axis(held.points, index[:, :, None], axis=1)
        waits = np.take_along_axis(held.waits, index, axis=1)
        of_left_out = np.where(np.arange(before) <= left_out[:, None], held.waits, _UNKNOWN)
        waits[:, 0] = np.maximum(waits[:, 0], of_left_out.max(axis=1))
        self._blocks[number] = _Block(array("q", points.tobytes()), array("i", waits.tobytes()))
        self._widths[number] = kept
        if self._apart:
            for slot in self._apart.keys() & range(first, first + self._block):
                self._apart[slot] = _newest(self._apart[slot], kept)
        there = len(self._lengths) - first
        self._lengths[first : first + self._block] = (
            np.minimum(length, kept)[:there].astype(np.uint8).tobytes()
        )
        return self._blocks[number]


def _columns(block: _Block, width: int) -> _Columns:
    """Return a block's steps, which are not copied; ``width`` is how many a history has room for."""
    return _Columns(
        np.frombuffer(block.points, np.int64).reshape(-1, width, 2),
        np.frombuffer(block.waits, np.int32).reshape(-1, width),
    )


def _newest(steps: array[int], kept: int) -> array[int]:
    """Return a copy of the newest steps, ``kept`` of them at most.

    The longest wait among those left out is kept with the oldest step.
    """
    surplus = max(len(steps) // STEP_NUMBERS - kept, 0)
    newest = steps[surplus * STEP_NUMBERS :]
    if surplus:
        waits = steps[STEP_NUMBERS - 1 : (surplus + 1) * STEP_NUMBERS : STEP_NUMBERS]
        newest[STEP_NUMBERS - 1] = max(waits)
    return newest
