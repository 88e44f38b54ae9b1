"""Spares the garbage collector what is here to stay.

A full collection looks through all that may be part of a cycle. With a million group-partitions
that takes a tenth of a second in which nobody gets an answer, and finds nothing.
"""

from __future__ import annotations

import gc

#: Fewer than these are looked through in no time.
_FEW = 1_000


class Settling:
    """Freezes what there is whenever something that stays has become twice as much.

    Garbage that is frozen by chance stays, too; so it isn't done more often.
    """

    def __init__(self) -> None:
        self._next = _FEW

    def reached(self, count: int) -> None:
        """Take note of how many there are now."""
        if count >= self._next:
            self._next = 2 * count
            gc.freeze()
