"""The steps that groups made before their last one, in blocks: small enough for millions of rows.

A step is three numbers: the offset, when it was committed (ms), and how long the group waited with
it (ms, or -1). The more histories there are, the fewer steps each keeps.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from caughtup.models.histories.commits import STEP_NUMBERS, STEPS_KEPT

#: Steps that each history keeps before its last one, up to so many histories.
STEPS_UP_TO = ((200_000, STEPS_KEPT - 1), (600_000, 7))
FEWEST_STEPS = 5
#: Histories in a block.
_BLOCK = 1 << 10


class StepBlocks:
    """A slot for each history. ``steps_kept`` is how many steps a slot has room for."""

    def __init__(
        self, steps_up_to: Sequence[tuple[int, int]] = STEPS_UP_TO, block: int = _BLOCK
    ) -> None:
        self._steps_up_to = steps_up_to
        self._block = block
        self._blocks: list[array[int]] = []
        self._lengths = bytearray()
        self._free: list[int] = []
        self.steps_kept = steps_up_to[0][1]

    def __len__(self) -> int:
        return len(self._lengths) - len(self._free)

    def load(self, slot: int) -> array[int]:
        """Return the steps in a slot, oldest first."""
        block, start = self._place(slot)
        return block[start : start + self._lengths[slot] * STEP_NUMBERS]

    def store(self, slot: int | None, steps: array[int]) -> int:
        """Keep steps, the newest of them if they are too many; return their slot, a new one for None.

        The longest wait among those left out stays with the oldest that is kept.
        """
        if slot is None:
            slot = self._free.pop() if self._free else self._add()
        surplus = len(steps) // STEP_NUMBERS - self.steps_kept
        if surplus > 0:
            longest = max(steps[STEP_NUMBERS - 1 : (surplus + 1) * STEP_NUMBERS : STEP_NUMBERS])
            steps = steps[surplus * STEP_NUMBERS :]
            steps[STEP_NUMBERS - 1] = longest
        block, start = self._place(slot)
        block[start : start + len(steps)] = steps
        self._lengths[slot] = len(steps) // STEP_NUMBERS
        return slot

    def free(self, slot: int) -> None:
        """Give a slot back."""
        self._lengths[slot] = 0
        self._free.append(slot)

    def _place(self, slot: int) -> tuple[array[int], int]:
        return self._blocks[
            slot // self._block
        ], slot % self._block * self.steps_kept * STEP_NUMBERS

    def _add(self) -> int:
        slot = len(self._lengths)
        self._lengths.append(0)
        wanted = next((kept for limit, kept in self._steps_up_to if slot < limit), FEWEST_STEPS)
        if wanted < self.steps_kept:
            self._narrow(wanted)
        if slot == len(self._blocks) * self._block:
            self._blocks.append(array("q", bytes(8 * self._block * self.steps_kept * STEP_NUMBERS)))
        return slot

    def _narrow(self, steps_kept: int) -> None:
        """Leave out the oldest steps of every history that has more than so many."""
        before, self.steps_kept = self.steps_kept, steps_kept
        lengths = np.frombuffer(
            bytes(self._lengths).ljust(len(self._blocks) * self._block, b"\0"), np.uint8
        )
        for number, block in enumerate(self._blocks):
            steps = np.frombuffer(block, np.int64).reshape(self._block, before, STEP_NUMBERS)
            length = lengths[number * self._block : (number + 1) * self._block].astype(np.int64)
            left_out = np.maximum(length - steps_kept, 0)
            index = np.minimum(left_out[:, None] + np.arange(steps_kept), before - 1)
            kept = np.take_along_axis(steps, index[:, :, None], axis=1)
            waits = np.where(np.arange(before) <= left_out[:, None], steps[:, :, 2], -1)
            kept[:, 0, 2] = np.maximum(kept[:, 0, 2], waits.max(axis=1))
            self._blocks[number] = array("q", kept.tobytes())
        self._lengths = bytearray(np.minimum(lengths, steps_kept)[: len(self._lengths)].tobytes())
