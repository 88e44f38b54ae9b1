"""The streams of the data pipeline on Spark: what each last reported."""

from __future__ import annotations

from caughtup.models.pipeline_progress import Status, StreamProgressTable
from caughtup.models.records.fields import Part


class StreamLine(Part, omit_defaults=True):
    """A stream: its status now, when it was last heard of, and the figures of ``ProgressRecord``."""

    stream: str
    status: Status
    heard_ms: int
    batch: int | None = None
    batch_seconds: float | None = None
    rows: int | None = None
    rows_per_second: float | None = None
    offsets_behind: int | None = None
    quarantined: int | None = None
    state_rows: int | None = None
    watermark_ms: int | None = None
    why: str | None = None


def stream_lines(progress: StreamProgressTable, now_ms: int) -> list[StreamLine]:
    """Return each stream at a moment (ms), in the order of their names."""
    return [
        StreamLine(
            stream,
            last.status(now_ms),
            last.heard_ms,
            last.record.batch,
            last.record.batch_seconds,
            last.record.rows,
            last.record.rows_per_second,
            last.record.offsets_behind,
            last.record.quarantined,
            last.record.state_rows,
            last.record.watermark_ms,
            last.record.why,
        )
        for stream, last in progress.streams()
    ]
