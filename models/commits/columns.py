"""Columns that grow: the last commit in each row, 53 bytes a row, and the ids of topics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caughtup.models.polls.commit_columns import NO_OFFSET, NO_TOPIC_ID

#: The slot of a row without earlier steps, and an unknown wait.
NO_SLOT = -1
NO_WAIT = -1
#: The factor by which columns grow, and their initial length.
_GROWTH = 1.125
_FEWEST_ROWS = 1 << 10
#: Unused ids are searched once at least this many were removed, and half as many as there are.
_FEWEST_REMOVED = 64
#: The number of an unknown id.
UNKNOWN_ID = -2


class CommitTableColumns:
    """One array for each field, all of the same length; rows from ``used`` on are unused.

    ``offset`` is the committed offset, NO_OFFSET in a row without a commit; ``commit_ms`` the time
    of the last commit; ``step_ms`` the time at which the committed offset last changed; ``wait_ms``
    the group's wait before that step, or before a later commit that repeats it, NO_WAIT if unknown
    (all int64; times in ms since the epoch). ``topic_id`` is an index in a list of ids, or
    NO_TOPIC_ID; ``slot`` is where the steps before the last are, or NO_SLOT; ``stamp`` is scratch
    space for the time of a call (int32); ``changed`` is the number of the change of the table in which
    the row last had a commit (int64). ``is_rewound`` marks the rows, usually few, whose
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
        self.changed = np.zeros(_FEWEST_ROWS, np.int64)
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
                # In place: copies would be most of the cost of a long log. No view of a column may
                # be kept, since its memory may be freed here.
                column.resize(size, refcheck=False)
                column[before:] = nothing
        return first

    def _columns(self) -> tuple[tuple[NDArray[np.generic], int], ...]:
        return (
            (self.offset, NO_OFFSET),
            (self.commit_ms, 0),
            (self.step_ms, 0),
            (self.wait_ms, NO_WAIT),
            (self.topic_id, NO_TOPIC_ID),
            (self.slot, NO_SLOT),
            (self.stamp, 0),
            (self.changed, 0),
            (self.is_rewound, 0),
        )

    def rewind(self, row: int, rewound_from: int | None) -> None:
        """Set the offset from which the commits of a row went back, or None if they didn't."""
        if rewound_from is not None:
            self.rewound[row] = rewound_from
            self.is_rewound[row] = True
        elif self.is_rewound[row]:
            del self.rewound[row]
            self.is_rewound[row] = False

    def move(self, source: int, target: int, count: int) -> None:
        """Move rows to rows without commits; the old rows have no commits afterwards."""
        was, now = slice(source, source + count), slice(target, target + count)
        for row in (source + np.flatnonzero(self.is_rewound[was])).tolist():
            self.rewound[row + target - source] = self.rewound.pop(row)
        for column, nothing in self._columns():
            column[now] = column[was]
            column[was] = nothing


class TopicIds:
    """Topics' ids (16 bytes), each kept once, and their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._ids: list[bytes] = []
        self._removed = 0

    def __len__(self) -> int:
        return len(self._ids)

    def number(self, topic_id: bytes | None) -> int:
        """Return the number of an id, a new one if it has none; NO_TOPIC_ID for None."""
        if topic_id is None:
            return NO_TOPIC_ID
        number = self._numbers.get(topic_id)
        if number is None:
            number = self._numbers[topic_id] = len(self._ids)
            self._ids.append(topic_id)
        return number

    def known(self, topic_id: bytes) -> int:
        """Return the number of an id, UNKNOWN_ID if it has none."""
        return self._numbers.get(topic_id, UNKNOWN_ID)

    def find(self, number: int) -> bytes | None:
        """Return the id with a number; None for NO_TOPIC_ID."""
        return None if number == NO_TOPIC_ID else self._ids[number]

    def sweep(self, columns: CommitTableColumns, removed: int) -> None:
        """Remove the ids that no row has, if there may be many; the others get new numbers.

        ``removed`` is the number of heads (groups' topics) removed since the last time, each of
        which may have had an id.
        """
        self._removed += removed
        if self._removed < max(_FEWEST_REMOVED, len(self._ids) // 2):
            return
        self._removed = 0
        # Rows without a commit may still have a number.
        there = np.where(columns.offset == NO_OFFSET, NO_TOPIC_ID, columns.topic_id)
        rows = np.bincount(there + 1, minlength=len(self._ids) + 1)[1:]
        kept = np.flatnonzero(rows)
        numbers = np.full(len(self._ids) + 1, NO_TOPIC_ID, np.int32)
        numbers[kept] = np.arange(len(kept))
        columns.topic_id[:] = numbers[there]
        self._ids = [self._ids[number] for number in kept.tolist()]
        self._numbers = {topic_id: number for number, topic_id in enumerate(self._ids)}
