"""The steps of groups before their last one, in blocks: small enough for millions of rows.

A step is three numbers: the offset, the time of the commit (ms), and the group's wait before it
(ms, or -1). They are packed in 16 bytes. A history with a step that can't be packed is kept as it
is, at twice the memory or more. The more histories there are, the fewer steps each keeps.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from caughtup.models.commits.packing import (
    PACKED_NUMBERS,
    pack,
    pack_history,
    unpack,
    unpack_history,
    waits_of,
    with_waits,
)
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


class StepBlocks:
    """A slot for each history. ``steps_kept`` is the number of steps that a slot has room for."""

    def __init__(
        self, steps_up_to: Sequence[tuple[int, int]] = STEPS_UP_TO, block: int = _BLOCK
    ) -> None:
        self._steps_up_to = steps_up_to
        self._block = block
        self._pace = max(1, block // _NARROWED_MEANWHILE)
        self._blocks: list[array[int]] = []
        #: The steps that each slot of a block has room for: ``steps_kept`` for nearly all blocks.
        self._widths: list[int] = []
        self._lengths = bytearray()
        #: By slot, the steps of histories that can't be packed; what a block has there is unused.
        self._unpacked: dict[int, array[int]] = {}
        self._free: list[int] = []
        #: Blocks before this one are already narrowed to ``steps_kept``.
        self._narrowed = 0
        self.steps_kept = steps_up_to[0][1]

    def __len__(self) -> int:
        return len(self._lengths) - len(self._free)

    def load(self, slot: int) -> array[int]:
        """Return the steps in a slot, oldest first."""
        block, start = self._place(slot)
        if slot in self._unpacked:
            return self._unpacked[slot][:]
        return unpack_history(block[start : start + self._lengths[slot] * PACKED_NUMBERS])

    def waits(self, slots: Ints) -> Ints:
        """Return the waits before the steps in some slots (ms; int64), one row for each slot.

        Rows are as long as a slot has room for, with -1 for no step or an unknown wait.
        """
        found = waits_of(self._load_each(slots)[:, :, 1])
        for at in np.flatnonzero(self._are_unpacked(slots)).tolist():
            waits = self._unpacked[slots.item(at)][STEP_NUMBERS - 1 :: STEP_NUMBERS]
            found[at, : len(waits)] = waits
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
        packed = pack_history(steps)
        if packed is None:
            self._unpacked[slot] = steps
        else:
            self._unpacked.pop(slot, None)
            block[start : start + len(packed)] = packed
        self._lengths[slot] = len(steps) // STEP_NUMBERS
        return slot

    def append(self, slots: Ints, steps: Ints, next_ms: Ints) -> Rows:
        """Add a step to each of some slots, which differ; return which of them have got it.

        ``steps``: three numbers a row. ``next_ms``: the time of the history's last step, which is
        kept elsewhere. A full history is thinned, or loses its oldest step, as ``CommitHistory`` and
        ``store`` do it; one of which nothing but the last step would stay gets none, nor does one
        that can't be packed, before or after.
        """
        blocks = list(self._by_block(slots))  # which are narrowed then, before lengths are read
        lengths = np.frombuffer(self._lengths, np.uint8)
        length = lengths[slots].astype(np.int64)
        packed, fits = pack(steps)
        fits &= ~self._are_unpacked(slots)
        is_long = fits & (length + 2 > STEPS_KEPT)
        is_full = fits & ~is_long & (length == self.steps_kept)
        added: Rows = fits & ~is_long & ~is_full
        for held, at, some in blocks:
            has_room = added[some]
            held[at[has_room], length[some[has_room]]] = packed[some[has_room]]
        lengths[slots[added]] += 1
        if is_full.any():
            self._shift(slots[is_full], packed[is_full])
            added |= is_full
        if is_long.any():
            added[is_long] = self._thin(slots[is_long], steps[is_long], next_ms[is_long])
        return added

    def _are_unpacked(self, slots: Ints) -> Rows:
        """Return which of some slots have a history that can't be packed."""
        if not self._unpacked:
            return np.zeros(len(slots), np.bool_)
        return np.fromiter(map(self._unpacked.__contains__, slots.tolist()), np.bool_, len(slots))

    def _shift(self, slots: Ints, packed: Ints) -> None:
        """Put a step at the end of full histories; the wait of their oldest goes to the next."""
        held = np.concatenate((self._load_each(slots), packed[:, None]), axis=1)
        held[:, 1, 1] = with_waits(held[:, 1, 1], waits_of(held[:, 0, 1]))
        self._store_each(slots, held[:, 1:])

    def _thin(self, slots: Ints, steps: Ints, next_ms: Ints) -> Rows:
        """Thin histories with one more step and their last one; return which were."""
        held = unpack(self._load_each(slots))
        ages = next_ms - held[:, 0, 1]  # negative if 63 bits don't hold it
        fit: Rows = (ages > 0) & (ages < _LONGEST_MS)
        last = np.zeros_like(steps)
        last[:, 1] = next_ms
        made, counts = thinned(np.concatenate((held, steps[:, None], last[:, None]), axis=1)[fit])
        stays = counts > 1
        fit[fit] = stays
        made, counts = made[stays], counts[stays] - 1
        self._store_each(slots[fit], pack(made)[0])
        np.frombuffer(self._lengths, np.uint8)[slots[fit]] = counts
        return fit

    def _load_each(self, slots: Ints) -> Ints:
        """Return the packed steps in some slots: slots × ``steps_kept`` × PACKED_NUMBERS."""
        found = np.empty((len(slots), self.steps_kept, PACKED_NUMBERS), np.int64)
        for held, at, some in self._by_block(slots):
            found[some] = held[at]
        return found

    def _store_each(self, slots: Ints, packed: Ints) -> None:
        """Store packed steps in some slots, from their beginning, but not how many each has."""
        for held, at, some in self._by_block(slots):
            held[at, : packed.shape[1]] = packed[some]

    def free(self, slot: int) -> None:
        """Free a slot."""
        self._lengths[slot] = 0
        self._unpacked.pop(slot, None)
        self._free.append(slot)

    def _by_block(self, slots: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield the steps of each block with slots of these, the places in it, and those in slots.

        The steps are packed, and not copied: histories × ``steps_kept`` × PACKED_NUMBERS.
        """
        numbers, places = np.divmod(slots, self._block)
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(order)]):
            some = order[start:end]
            block = self._narrow(numbers.item(some.item(0)))
            held = np.frombuffer(block, np.int64).reshape(-1, self.steps_kept, PACKED_NUMBERS)
            yield held, places[some], some

    def _place(self, slot: int) -> tuple[array[int], int]:
        number, at = divmod(slot, self._block)
        block = self._blocks[number] if number < self._narrowed else self._narrow(number)
        return block, at * self.steps_kept * PACKED_NUMBERS

    def _add(self) -> int:
        slot = len(self._lengths)
        self._lengths.append(0)
        wanted = next(
            (kept for limit, kept in self._steps_up_to if slot < limit), FEWEST_STEPS_KEPT
        )
        if wanted < self.steps_kept:
            self.steps_kept, self._narrowed = wanted, 0
        if slot == len(self._blocks) * self._block:
            size = 8 * self._block * self.steps_kept * PACKED_NUMBERS
            self._blocks.append(array("q", bytes(size)))
            self._widths.append(self.steps_kept)
        if not slot % self._pace and self._narrowed < len(self._blocks):
            self._narrow(self._narrowed)
            self._narrowed += 1
        return slot

    def _narrow(self, number: int) -> array[int]:
        """Return a block, after removing the oldest steps beyond ``steps_kept`` of its histories.

        There may be hundreds of blocks when ``steps_kept`` falls: each is narrowed when it is used,
        or in its turn while slots are added.
        """
        before, kept = self._widths[number], self.steps_kept
        if before == kept:
            return self._blocks[number]
        first = number * self._block
        steps = np.frombuffer(self._blocks[number], np.int64).reshape(-1, before, PACKED_NUMBERS)
        lengths = bytes(self._lengths[first : first + self._block]).ljust(self._block, b"\0")
        length = np.frombuffer(lengths, np.uint8).astype(np.int64)
        left_out = np.maximum(length - kept, 0)
        index = np.minimum(left_out[:, None] + np.arange(kept), before - 1)
        narrowed = np.take_along_axis(steps, index[:, :, None], axis=1)
        waits = np.where(np.arange(before) <= left_out[:, None], waits_of(steps[:, :, 1]), _UNKNOWN)
        narrowed[:, 0, 1] = with_waits(narrowed[:, 0, 1], waits.max(axis=1))
        self._blocks[number], self._widths[number] = array("q", narrowed.tobytes()), kept
        if self._unpacked:
            for slot in self._unpacked.keys() & range(first, first + self._block):
                self._unpacked[slot] = _newest(self._unpacked[slot], kept)
        there = len(self._lengths) - first
        self._lengths[first : first + self._block] = (
            np.minimum(length, kept)[:there].astype(np.uint8).tobytes()
        )
        return self._blocks[number]


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
