"""How the streams of the data pipeline fare, by what each last reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

State = Literal["running", "stopped", "failed"]
Status = Literal["running", "late", "stopped", "failed"]

STATES: tuple[State, ...] = ("running", "stopped", "failed")
STATUSES: tuple[Status, ...] = ("running", "late", "stopped", "failed")

#: Streams that are kept. There are a handful, and anybody may write of more.
MOST_STREAMS = 100

_TRIGGERS = 3
#: A stream that takes what there is and ends has no trigger: its one batch may be long.
_ONCE_SECONDS = 600.0
_LEAST_SECONDS = 60.0
#: The first batch starts Spark's workers, and may hold all that came while no stream ran.
_FIRST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """A stream's last report. None: not known, or not reported.

    ``heard_ms`` is when the broker wrote it down: the driver's clock may be wrong.
    ``trigger_seconds`` is the time from one of its batches to the next, None where it takes what
    there is and ends. ``batch`` is the number of the last batch, ``batch_seconds`` what that took,
    ``rows`` the records that it read. ``offsets_behind`` sums, over all partitions, what lies
    between the batch's end and the end of the log. ``quarantined`` counts undecodable records
    since the stream's start, ``state_rows`` what it keeps from batch to batch. ``why`` is the
    reason of a failure, in a line.
    """

    state: State
    heard_ms: int
    trigger_seconds: float | None = None
    batch: int | None = None
    batch_seconds: float | None = None
    rows: int | None = None
    rows_per_second: float | None = None
    offsets_behind: int | None = None
    quarantined: int | None = None
    state_rows: int | None = None
    watermark_ms: int | None = None
    why: str | None = None

    def silent_after_ms(self) -> float:
        """Return after how many ms of silence something is wrong.

        Three triggers after it was last heard, or three times the last batch where that took
        longer than a trigger; never less than a minute, nor than ten before the first batch.
        """
        trigger = _ONCE_SECONDS if self.trigger_seconds is None else self.trigger_seconds
        usual = max(trigger, self.batch_seconds or 0.0)
        least = _FIRST_SECONDS if self.batch is None else _LEAST_SECONDS
        return self.heard_ms + 1000 * max(_TRIGGERS * usual, least)

    def status(self, now_ms: int) -> Status:
        """Return the stream's status at a moment (ms)."""
        if self.state == "running" and now_ms > self.silent_after_ms():
            return "late"
        return self.state


class StreamProgressTable:
    """The newest report of each stream, by its name, and the rows of all that were heard."""

    def __init__(self) -> None:
        self._streams: dict[str, StreamProgress] = {}
        self._rows: Counter[str] = Counter()

    def apply(self, stream: str, progress: StreamProgress | None) -> bool:
        """Apply a stream's progress, or None where it is to be forgotten.

        Returns False if there are too many streams to take another one.
        """
        if progress is None:
            self._streams.pop(stream, None)
            self._rows.pop(stream, None)
            return True
        if stream not in self._streams and len(self._streams) >= MOST_STREAMS:
            return False
        before = self._streams.get(stream)
        if before is None or before.batch != progress.batch:  # else the same batch is told again
            self._rows[stream] += progress.rows or 0
        self._streams[stream] = progress
        return True

    def rows(self, stream: str) -> int:
        """Count the records that the batches read which were heard of since the table began."""
        return self._rows[stream]

    def find(self, stream: str) -> StreamProgress:
        """Return a stream's newest report. Raises KeyError where there is none."""
        return self._streams[stream]

    def streams(self) -> Iterator[tuple[str, StreamProgress]]:
        """Return every stream that is known, in the order of their names."""
        yield from sorted(self._streams.items())
