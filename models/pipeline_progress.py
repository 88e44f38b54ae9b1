"""How the streams of the data pipeline fare, by what each last reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from caughtup.models.records.pipeline_progress import ProgressRecord

Status = Literal["running", "late", "stopped", "failed"]

STATUSES: tuple[Status, ...] = ("running", "late", "stopped", "failed")

#: Streams that are kept. There are a handful, and anybody may write of more.
MOST_STREAMS = 100

_TRIGGERS = 3
#: A stream that takes what there is and ends has no trigger: its one batch may be long.
_ONCE_SECONDS = 600.0
_LEAST_SECONDS = 60.0
#: The first batch starts Spark's workers, and may hold all that came while no stream ran.
_FIRST_SECONDS = 600.0


class StreamProgress(NamedTuple):
    """A stream's last report, and when the broker wrote it down (ms).

    The clock of the stream's driver may be wrong.
    """

    heard_ms: int
    record: ProgressRecord

    def silent_after_ms(self) -> float:
        """Return after how many ms of silence something is wrong.

        Three triggers after it was last heard, or three times the last batch where that took
        longer than a trigger; never less than a minute, nor than ten before the first batch.
        """
        trigger = (
            _ONCE_SECONDS if self.record.trigger_seconds is None else self.record.trigger_seconds
        )
        usual = max(trigger, self.record.batch_seconds or 0.0)
        least = _FIRST_SECONDS if self.record.batch is None else _LEAST_SECONDS
        return self.heard_ms + 1000 * max(_TRIGGERS * usual, least)

    def status(self, now_ms: int) -> Status:
        """Return the stream's status at a moment (ms)."""
        if self.record.state == "running" and now_ms > self.silent_after_ms():
            return "late"
        return self.record.state


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
        if (
            before is None or before.record.batch != progress.record.batch
        ):  # else the same batch is told again
            self._rows[stream] += progress.record.rows or 0
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
