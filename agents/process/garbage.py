"""Keep garbage collections short: objects that stay are frozen, and collections are rare.

A full collection traverses all objects that may be part of a cycle. With a million group-partitions
that blocks the event loop for 0.1 s, and finds nothing.
"""

from __future__ import annotations

import gc

#: The number of groups, or copies of a large one, that a collection traverses in a few ms.
_A_FEW = 1_000


#: The thresholds of gc.set_threshold. With Python's own (700, 10, 10) the listing of a large
#: group's end offsets alone causes a full collection each second, of some 50 ms.
_SELDOM = (10_000, 10, 50)


def collect_seldom() -> None:
    """Set Python to search for garbage cycles seldom: the service makes few."""
    gc.set_threshold(*_SELDOM)


class FreezeOnGrowth:
    """Freezes all existing objects whenever a count has grown by 1,000.

    Garbage that exists at that moment is frozen too and never freed; so only growth triggers it.
    """

    def __init__(self) -> None:
        self._next = _A_FEW

    def reached(self, count: int) -> None:
        """Take the present count, and freeze if it has grown enough."""
        if count >= self._next:
            self._next = count + _A_FEW
            gc.freeze()
