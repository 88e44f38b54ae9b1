"""The commits of a group on one partition over time, bounded in memory.

A point is a *step*: a commit that changed the committed offset. Of commits that repeat an offset,
only the time of the last one is kept, and the longest time between two.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

import numpy as np

from caughtup.models.clocks import is_from_the_future
from caughtup.models.histories.thinning import kept_points, kept_points_of_each
from caughtup.models.polls.column_reader import Ints

#: The number of newest steps, which all stay, and of older ones; the age of the oldest, in ms.
DENSE_STEPS = 4
SPARSE_STEPS = 8
HORIZON_MS = 6 * 3_600_000
#: Steps after which a history is thinned.
STEPS_KEPT = 16
#: With fewer known waits than FEWEST_WAITS the interval is unknown; with fewer than ENOUGH_WAITS it
#: is the longest. A wait that began when a record arrived may be any part of the interval.
FEWEST_WAITS = 2
ENOUGH_WAITS = 5

#: The numbers of a step: the offset, the time of the commit (ms), and the group's wait before it.
STEP_NUMBERS = 3
_UNKNOWN = -1


class CommitHistory:
    """A group's steps on a partition, oldest first, and its last commit.

    ``commit_timestamp_ms`` is the time of the last commit, by the coordinator's clock. ``topic_id``
    is that of the topic of the commits, None if the record has none. ``rewound_from`` is the
    greatest offset that was committed before the commits went back, until they reach it or the
    log's end; else None.
    """

    # Three numbers a step, one step after the other: the offset, the time of the commit (ms), and
    # the group's wait before that step, or before a later commit that repeats it (ms, or -1).
    __slots__ = ("_steps", "commit_timestamp_ms", "rewound_from", "topic_id")

    def __init__(self, offset: int, timestamp_ms: int, topic_id: bytes | None = None) -> None:
        self._steps = array("q", (offset, timestamp_ms, _UNKNOWN))
        self.commit_timestamp_ms = timestamp_ms
        self.topic_id = topic_id
        self.rewound_from: int | None = None

    @classmethod
    def of(
        cls,
        steps: array[int],
        commit_timestamp_ms: int,
        topic_id: bytes | None,
        rewound_from: int | None,
    ) -> CommitHistory:
        """Return the history of these steps: at least one, three numbers each, oldest first.

        The numbers are the offset, the time of the commit, and the group's wait before it (ms, or
        -1).
        """
        made = object.__new__(cls)
        made._steps, made.commit_timestamp_ms = steps, commit_timestamp_ms
        made.topic_id, made.rewound_from = topic_id, rewound_from
        return made

    def first_after(self, at_ms: int) -> int | None:
        """Return the time (ms) of the first known commit after ``at_ms``, None without one.

        It may be later than the first one that there was: old steps are dropped.
        """
        if self.commit_timestamp_ms <= at_ms:
            return None
        later = (ms for ms in self._steps[1::STEP_NUMBERS] if ms > at_ms)
        return next(later, self.commit_timestamp_ms)

    def copy(self) -> CommitHistory:
        """Return a copy that later commits don't change."""
        return CommitHistory.of(
            self._steps[:], self.commit_timestamp_ms, self.topic_id, self.rewound_from
        )

    @property
    def steps(self) -> array[int]:
        """The steps in the form of ``of``; not to be changed."""
        return self._steps

    def add(
        self,
        offset: int,
        timestamp_ms: int,
        unread_since_ms: int | None = None,
        now_ms: int | None = None,
    ) -> None:
        """Add a commit.

        ``unread_since_ms`` is a time at which there was nothing to read beyond the last commit:
        waiting for a producer is no slowness of the group. None if no such time is known. Commits
        come in the order of their log, whatever the coordinators' clocks say. But one that is both
        older and no further than the last is already known: the log is read again from its start
        after a lost connection, and that is no rewind. The exception is a last commit whose time is
        later than ``now_ms``: its coordinator's clock has been set back since.
        """
        steps = self._steps
        committed, step_ms = steps[-3], steps[-2]
        if timestamp_ms < self.commit_timestamp_ms:
            if now_ms is not None and is_from_the_future(self.commit_timestamp_ms, now_ms):
                self.commit_timestamp_ms = timestamp_ms
                self._start_again(offset, timestamp_ms, rewound=offset < committed)
                return
            if offset <= committed:
                return
        before_ms, self.commit_timestamp_ms = self.commit_timestamp_ms, timestamp_ms
        if offset == committed:
            steps[-1] = max(steps[-1], timestamp_ms - before_ms)
            return
        if offset < committed:
            self._start_again(offset, timestamp_ms, rewound=True)
            return
        if self.rewound_from is not None and offset >= self.rewound_from:
            self.rewound_from = None
        if timestamp_ms <= step_ms:
            steps[-3] = offset
            return
        since = step_ms if unread_since_ms is None else max(step_ms, unread_since_ms)
        steps.fromlist([offset, timestamp_ms, max(0, timestamp_ms - since)])
        if len(steps) > STEPS_KEPT * STEP_NUMBERS:
            self._thin()

    def _start_again(self, offset: int, timestamp_ms: int, *, rewound: bool) -> None:
        """Start again from an offset, and keep the group's interval."""
        interval = self.interval_ms
        if rewound:
            self.rewound_from = max(self.committed, self.rewound_from or 0)
        wait_ms = _UNKNOWN if interval is None else interval
        self._steps[:] = array("q", (offset, timestamp_ms, wait_ms))

    def _thin(self) -> None:
        """Drop old steps; the longest wait among the dropped ones is kept with the next step."""
        steps = self._steps
        waits = steps[2::STEP_NUMBERS]
        thinned = array("q")
        after = None
        for index in kept_points(steps[1::STEP_NUMBERS], DENSE_STEPS, SPARSE_STEPS, HORIZON_MS):
            at = index * STEP_NUMBERS
            start = index if after is None else after
            thinned.extend((steps[at], steps[at + 1], max(waits[start : index + 1])))
            after = index + 1
        # In the same array: the garbage collector would have to track a million new ones.
        self._steps[:] = thinned

    @property
    def committed(self) -> int:
        """The committed offset."""
        return self._steps[-3]

    @property
    def step_ms(self) -> int:
        """When the committed offset last changed, in ms since the epoch."""
        return self._steps[-2]

    @property
    def first_offset(self) -> int:
        """The offset of the oldest known step."""
        return self._steps[0]

    @property
    def first_ms(self) -> int:
        """The time of the oldest known step, in ms since the epoch."""
        return self._steps[1]

    @property
    def interval_ms(self) -> int | None:
        """The group's usual time from one step to the next while there is something to read, in ms.

        It is the second longest such time in the history: one outage doesn't change it, and a group
        that commits in bursts with long pauses has the long pauses as its interval. With few known
        waits it is the longest; with fewer than two it is None.
        """
        waits = sorted(self._steps[2::STEP_NUMBERS])
        known = len(waits) - bisect_right(waits, _UNKNOWN)
        if known < FEWEST_WAITS:
            return None
        return waits[-1] if known < ENOUGH_WAITS else waits[-2]

    def resumed_ms(self, wait_ms: int) -> int | None:
        """Return when the group last made a step after a wait longer than ``wait_ms``, or None."""
        steps = self._steps
        if max(steps[2::STEP_NUMBERS]) <= wait_ms:  # as nearly always
            return None
        for at in range(len(steps) - STEP_NUMBERS, -1, -STEP_NUMBERS):
            if steps[at + 2] > wait_ms:
                return steps[at + 1]
        return None

    def committed_at(self, moment_ms: int) -> int | None:
        """Return the last offset committed at or before a time.

        None before the first known step.
        """
        index = bisect_right(self._steps[1::STEP_NUMBERS], moment_ms)
        return self._steps[(index - 1) * STEP_NUMBERS] if index else None

    def position_at(self, moment_ms: int) -> float | None:
        """Return the interpolated position at a time; None before the first known step.

        After the last step it is the committed offset.
        """
        steps = self._steps
        if moment_ms >= steps[-2]:
            return steps[-3]
        index = bisect_right(steps[1::STEP_NUMBERS], moment_ms)
        if not index:
            return None
        at = (index - 1) * STEP_NUMBERS
        offset, since = steps[at], steps[at + 1]
        later, until = steps[at + STEP_NUMBERS], steps[at + STEP_NUMBERS + 1]
        return offset + (later - offset) * (moment_ms - since) / (until - since)

    def __len__(self) -> int:
        return len(self._steps) // STEP_NUMBERS


def thinned(steps: Ints) -> tuple[Ints, Ints]:
    """Thin several histories as ``CommitHistory.add`` does; return their steps, and their numbers.

    ``steps``: int64, histories × steps × STEP_NUMBERS, each oldest first, with times as for
    ``kept_points_of_each``. Of the same form are those returned; unused ones at the end are zero.
    """
    kept = kept_points_of_each(steps[:, :, 1], DENSE_STEPS, SPARSE_STEPS, HORIZON_MS)
    counts: Ints = kept.sum(axis=1)
    # A dropped step, except one before all that are kept, leaves its wait to the next one.
    dropped = ~kept & np.logical_or.accumulate(kept, axis=1)
    waits = steps[:, :, 2].copy()
    for at in range(1, waits.shape[1]):
        left = dropped[:, at - 1]
        waits[left, at] = np.maximum(waits[left, at], waits[left, at - 1])
    made = np.zeros((len(steps), DENSE_STEPS + SPARSE_STEPS, STEP_NUMBERS), np.int64)
    row, column = np.nonzero(kept)
    place = (np.cumsum(kept, axis=1) - 1)[row, column]
    made[row, place, :2] = steps[row, column, :2]
    made[row, place, 2] = waits[row, column]
    return made, counts
