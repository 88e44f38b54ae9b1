"""Spares the garbage collector what is here to stay.

A full collection looks through all that may be part of a cycle. With a million group-partitions
that takes a tenth of a second in which nobody gets an answer, and finds nothing.
"""

from __future__ import annotations

import gc

#: So many groups, or copies of a large one, are looked through in a few milliseconds.
_A_FEW = 1_000


class Settling:
    """Freezes what there is whenever there is more by a few of what stays.

    Garbage that is frozen by chance stays, too; so this is done for growth and nothing else.
    """

    def __init__(self) -> None:
        self._next = _A_FEW

    def reached(self, count: int) -> None:
        """Take note of how many there are now."""
        if count >= self._next:
            self._next = count + _A_FEW
            gc.freeze()
