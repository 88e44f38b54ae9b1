"""Columns that grow: what is known of the last commit in each row, 45 bytes a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caughtup.models.polls.commit_columns import NO_OFFSET, NO_TOPIC_ID

#: What stands for the slot of a row that has no earlier steps, and for a wait that isn't known.
NO_SLOT = -1
NO_WAIT = -1
#: By how much columns grow, and from what.
_GROWTH = 1.125
_FEWEST_ROWS = 1 << 10


class Columns:
    """One array a field, each as long as the others; rows from ``used`` on are nobody's yet.

    ``offset`` is the committed offset, NO_OFFSET in a row without a commit; ``commit_ms`` when the
    last commit was made; ``step_ms`` when the committed offset last changed; ``wait_ms`` how long
    the group waited with that step, or later with a commit that repeats it, NO_WAIT while unknown
    (all int64; times in ms since the epoch). ``topic_id`` is an index in a list of ids, or
    NO_TOPIC_ID; ``slot`` is where the steps before the last are, or NO_SLOT; ``stamp`` is anybody's
    for the time of a call (int32). ``is_rewound`` marks the rows, few of them usually, whose
    ``CommitHistory.rewound_from`` is in ``rewound``.
    """

    def __init__(self) -> None:
        self.used = 0
        self.offset = np.full(_FEWEST_ROWS, NO_OFFSET, np.int64)
        self.commit_ms = np.zeros(_FEWEST_ROWS, np.int64)
        self.step_ms = np.zeros(_FEWEST_ROWS, np.int64)
        self.wait_ms = np.full(_FEWEST_ROWS, NO_WAIT, np.int64)
        self.topic_id = np.full(_FEWEST_ROWS, NO_TOPIC_ID, np.int32)
        self.slot = np.full(_FEWEST_ROWS, NO_SLOT, np.int32)
        self.stamp = np.zeros(_FEWEST_ROWS, np.int32)
        self.is_rewound = np.zeros(_FEWEST_ROWS, np.bool_)
        self.rewound: dict[int, int] = {}

    def add(self, count: int) -> int:
        """Add rows without a commit; return the first."""
        first = self.used
        self.used += count
        if self.used > len(self.offset):
            size = max(self.used, int(len(self.offset) * _GROWTH))
            for column, nothing in self._columns():
                before = len(column)
                # In place: a copy of each would be most of what a long log costs. Nobody may hold
                # on to a part of a column, which would be anybody's memory afterwards.
                column.resize(size, refcheck=False)
                column[before:] = nothing
        return first

    def _columns(self) -> tuple[tuple[NDArray[Any], int], ...]:
        return (
            (self.offset, NO_OFFSET),
            (self.commit_ms, 0),
            (self.step_ms, 0),
            (self.wait_ms, NO_WAIT),
            (self.topic_id, NO_TOPIC_ID),
            (self.slot, NO_SLOT),
            (self.stamp, 0),
            (self.is_rewound, 0),
        )

    def rewind(self, row: int, rewound_from: int | None) -> None:
        """Note from where the commits of a row went back, None if they didn't, or are there again."""
        if rewound_from is not None:
            self.rewound[row] = rewound_from
            self.is_rewound[row] = True
        elif self.is_rewound[row]:
            del self.rewound[row]
            self.is_rewound[row] = False

    def move(self, source: int, target: int, count: int) -> None:
        """Move rows to where there are no commits; where they were there are none afterwards."""
        was, now = slice(source, source + count), slice(target, target + count)
        for row in (source + np.flatnonzero(self.is_rewound[was])).tolist():
            self.rewound[row + target - source] = self.rewound.pop(row)
        for column, nothing in self._columns():
            column[now] = column[was]
            column[was] = nothing
