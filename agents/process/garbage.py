"""Spares the garbage collector what is here to stay.

A full collection looks through all that may be part of a cycle. With a million group-partitions
that takes a tenth of a second in which nobody gets an answer, and finds nothing.
"""

from __future__ import annotations

import gc

#: So many groups, or copies of a large one, are looked through in a few milliseconds.
_A_FEW = 1_000


#: New objects before the youngest are looked through, and how often that happens before the older
#: ones are. By Python's own 700, 10, 10 the listing of a large group's end offsets alone has
#: everything looked through each second, some 50 ms of it, and nothing is found.
_SELDOM = (10_000, 10, 50)


def collect_seldom() -> None:
    """Set Python to collect garbage cycles seldom, of which hardly any are made here."""
    gc.set_threshold(*_SELDOM)


class FreezeOnGrowth:
    """Freezes what there is whenever there is more by a few of what stays.

    Garbage that is frozen by chance stays, too; so this is done for growth and nothing else.
    """

    def __init__(self) -> None:
        self._next = _A_FEW

    def reached(self, count: int) -> None:
        """Note how many there are now."""
        if count >= self._next:
            self._next = count + _A_FEW
            gc.freeze()
