"""The streams of the data pipeline on Spark: their status by their last reports, and as shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from caughtup.models.records.fields import extended
from caughtup.models.records.pipeline_progress import ProgressRecord

Status = Literal["running", "late", "stopped", "failed"]

STATUSES: tuple[Status, ...] = ("running", "late", "stopped", "failed")

#: The most streams that are kept: reports of further ones may be made up.
MOST_STREAMS = 100

_TRIGGERS = 3
#: For a stream that processes what there is and ends: it has no trigger, and a batch may take long.
_ONCE_SECONDS = 600.0
_LEAST_SECONDS = 60.0
#: The first batch starts Spark's workers, and may have all records since the last run.
_FIRST_SECONDS = 600.0


class StreamProgress(NamedTuple):
    """A stream's last report, with its timestamp by the broker (ms): the driver's clock may be wrong."""

    heard_ms: int
    record: ProgressRecord

    def silent_after_ms(self) -> float:
        """Return the time (ms) after which a running stream without a further report is late.

        Three triggers after the last report, or three times the last batch if that took longer than
        a trigger; at least a minute, and at least ten before the first batch.
        """
        trigger = (
            _ONCE_SECONDS if self.record.trigger_seconds is None else self.record.trigger_seconds
        )
        usual = max(trigger, self.record.batch_seconds or 0.0)
        least = _FIRST_SECONDS if self.record.batch is None else _LEAST_SECONDS
        return self.heard_ms + 1000 * max(_TRIGGERS * usual, least)

    def status(self, now_ms: int) -> Status:
        """Return the stream's status at a time (ms)."""
        if self.record.state == "running" and now_ms > self.silent_after_ms():
            return "late"
        return self.record.state


class StreamProgressTable:
    """The newest report of each stream, by its name, and the total rows of all reports."""

    def __init__(self) -> None:
        self._streams: dict[str, StreamProgress] = {}
        self._rows: Counter[str] = Counter()

    def apply(self, stream: str, progress: StreamProgress | None) -> bool:
        """Apply a stream's progress, or None to remove it.

        Returns False if there are too many streams to add another one.
        """
        if progress is None:
            self._streams.pop(stream, None)
            self._rows.pop(stream, None)
            return True
        if stream not in self._streams and len(self._streams) >= MOST_STREAMS:
            return False
        before = self._streams.get(stream)
        # Otherwise the same batch is reported again.
        if before is None or before.record.batch != progress.record.batch:
            self._rows[stream] += progress.record.rows or 0
        self._streams[stream] = progress
        return True

    def rows(self, stream: str) -> int:
        """Return the number of records that a stream's reported batches have read."""
        return self._rows[stream]

    def find(self, stream: str) -> StreamProgress:
        """Return a stream's newest report. Raises KeyError without one."""
        return self._streams[stream]

    def streams(self) -> Iterator[tuple[str, StreamProgress]]:
        """Yield every known stream, in the order of their names."""
        yield from sorted(self._streams.items())


class StreamLine(ProgressRecord, kw_only=True):
    """A stream's last report, with its name, its status at present, and the time of the report."""

    stream: str
    status: Status
    heard_ms: int


def stream_lines(progress: StreamProgressTable, now_ms: int) -> list[StreamLine]:
    """Return the line of each stream at ``now_ms``, sorted by name."""
    return [
        extended(
            StreamLine,
            last.record,
            stream=stream,
            status=last.status(now_ms),
            heard_ms=last.heard_ms,
        )
        for stream, last in progress.streams()
    ]
