"""What a group committed on one partition over time: bounded, and small enough for a million.

A point is a step: the committed offset changed. Of commits that repeat an offset only the time of
the last one is kept, and the longest time between two.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

from caughtup.models.clocks import is_from_the_future
from caughtup.models.histories.thinning import kept_points

#: The newest steps, which all stay; the older ones; and how far back they reach in ms.
DENSE_STEPS = 4
SPARSE_STEPS = 8
HORIZON_MS = 6 * 3_600_000
#: Steps after which a history is thinned.
STEPS_KEPT = 16
#: With fewer waits than these there is no rhythm yet; with fewer than those, the longest is it. A
#: wait that began with a record's coming may be any part of the group's interval.
FEWEST_WAITS = 2
ENOUGH_WAITS = 5

#: Of a step: the offset, when it was committed (ms), and how long the group waited with it.
STEP_NUMBERS = 3
_UNKNOWN = -1


class CommitHistory:
    """A group's steps on a partition, oldest first, and its last commit.

    ``commit_timestamp_ms`` is when the last commit was made, by the coordinator's clock.
    ``topic_id`` is that of the topic committed on, None where the record has none.
    ``rewound_from`` is the greatest offset that was committed before the commits went back, until
    they reach it or the log's end; else None.
    """

    # Three numbers a step, one step after the other: the offset, when it was committed (ms), and
    # how long the group waited with that step, or later with a commit that repeats it (ms, or -1).
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
        """Return the history of some steps: one at least, three numbers each, oldest first.

        The offset, when it was committed, and how long the group waited with it (ms, or -1).
        """
        made = object.__new__(cls)
        made._steps, made.commit_timestamp_ms = steps, commit_timestamp_ms
        made.topic_id, made.rewound_from = topic_id, rewound_from
        return made

    def copy(self) -> CommitHistory:
        """Return the commits that there are now, whatever comes."""
        return CommitHistory.of(
            self._steps[:], self.commit_timestamp_ms, self.topic_id, self.rewound_from
        )

    @property
    def steps(self) -> array[int]:
        """The steps as ``of`` takes them; not to be changed."""
        return self._steps

    def add(
        self,
        offset: int,
        timestamp_ms: int,
        unread_since_ms: int | None = None,
        now_ms: int | None = None,
    ) -> None:
        """Add a commit.

        ``unread_since_ms`` is a moment at which there was nothing to read beyond the last commit:
        a group that waits for a producer isn't slow to commit. None if no such moment is known.
        Commits come in the order of their log, whatever the coordinators' clocks say. But one
        that is both older and no further than the last was known before: the log is read again
        from its start after a lost connection, and that is no rewind. Unless the last is of a time
        that is yet to come by now (ms): its coordinator's clock has been set back since.
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
        """Start again from an offset, with what is known of the group's rhythm."""
        rhythm = self.interval_ms
        if rewound:
            self.rewound_from = max(self.committed, self.rewound_from or 0)
        wait_ms = _UNKNOWN if rhythm is None else rhythm
        self._steps[:] = array("q", (offset, timestamp_ms, wait_ms))

    def _thin(self) -> None:
        """Drop old steps; the longest wait among those dropped stays with the next one."""
        steps = self._steps
        waits = steps[2::STEP_NUMBERS]
        thinned = array("q")
        after = None
        for index in kept_points(steps[1::STEP_NUMBERS], DENSE_STEPS, SPARSE_STEPS, HORIZON_MS):
            at = index * STEP_NUMBERS
            start = index if after is None else after
            thinned.extend((steps[at], steps[at + 1], max(waits[start : index + 1])))
            after = index + 1
        # The same array: new ones, of a million histories, the garbage collector would look through.
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
        """The offset of the oldest step that is still known."""
        return self._steps[0]

    @property
    def first_ms(self) -> int:
        """When the oldest step that is still known was made, in ms since the epoch."""
        return self._steps[1]

    @property
    def interval_ms(self) -> int | None:
        """How long this group takes from one step to the next when there is something to read.

        The second longest such time in the history, in ms: one outage doesn't make a rhythm, and
        a rhythm of bursts with long pauses is one of long pauses. The longest while few are
        known; None while it is fewer than two.
        """
        waits = sorted(wait for wait in self._steps[2::STEP_NUMBERS] if wait != _UNKNOWN)
        if len(waits) < FEWEST_WAITS:
            return None
        return waits[-1] if len(waits) < ENOUGH_WAITS else waits[-2]

    def resumed_ms(self, wait_ms: int) -> int | None:
        """Return when the group last made a step after a wait longer than ``wait_ms``, or None."""
        steps = self._steps
        for at in range(len(steps) - STEP_NUMBERS, -1, -STEP_NUMBERS):
            if steps[at + 2] > wait_ms:
                return steps[at + 1]
        return None

    def committed_at(self, moment_ms: int) -> int | None:
        """Return the offset last committed at or before a moment; None before the first known one."""
        index = bisect_right(self._steps[1::STEP_NUMBERS], moment_ms)
        return self._steps[(index - 1) * STEP_NUMBERS] if index else None

    def position_at(self, moment_ms: int) -> float | None:
        """Interpolate where the group was at a moment; None before its first known step.

        After the last step it is at the committed offset.
        """
        steps = self._steps
        index = bisect_right(steps[1::STEP_NUMBERS], moment_ms)
        if not index:
            return None
        at = (index - 1) * STEP_NUMBERS
        offset, since = steps[at], steps[at + 1]
        if at + STEP_NUMBERS == len(steps):
            return offset
        later, until = steps[at + STEP_NUMBERS], steps[at + STEP_NUMBERS + 1]
        return offset + (later - offset) * (moment_ms - since) / (until - since)

    def __len__(self) -> int:
        return len(self._steps) // STEP_NUMBERS
