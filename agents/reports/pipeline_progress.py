"""caughtup-pipeline-progress: how the streams on Spark get on, as they tell."""

from __future__ import annotations

from typing import Any

import faust

from caughtup.agents.topics.decoding import taking, times_of
from caughtup.agents.topics.records import Slice
from caughtup.models.pipeline_progress import StreamProgressTable
from caughtup.models.records.decoding import TOO_MANY, RefusedError, require_past
from caughtup.models.records.pipeline_progress import read_progress
from caughtup.models.records.topics import PIPELINE_PROGRESS
from caughtup.models.state.cluster import ClusterState


def pipeline_progress(app: faust.App, channel: faust.ChannelT, state: ClusterState) -> None:
    """Register the pipeline-progress agent: the newest of each stream, kept."""

    @app.agent(channel, name="pipeline_progress")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                apply_record(state, record.key, record.value, *times_of(record))


def apply_record(
    state: ClusterState,
    key: bytes | None,
    value: bytes | None,
    at_ms: int,
    clock_ms: int | None = None,
) -> None:
    """Take one record of caughtup-pipeline-progress, unless it is refused.

    ``at_ms`` is the record's timestamp, which the broker gives it when it is appended, and
    ``clock_ms`` what to hold it against.
    """
    with taking(state, PIPELINE_PROGRESS, key, clock_ms) as clock:
        require_past(at_ms, clock)
        stream, record = read_progress(key, value)
        told = None if record is None else record.to_progress(at_ms)
        if not state.pipeline.apply(stream, told):
            raise RefusedError(TOO_MANY, "too many streams tell of themselves")


def progress_rows(progress: StreamProgressTable, now_ms: int) -> list[dict[str, Any]]:
    """Say of every stream what the page shows; what isn't known is left out."""
    rows = []
    for stream, told in progress.streams():
        row = {"stream": stream, "status": told.status(now_ms), "heard_ms": told.heard_ms}
        shown = ("batch", "batch_seconds", "rows", "rows_per_second", "offsets_behind")
        shown += ("quarantined", "state_rows", "watermark_ms", "why")
        known = ((name, getattr(told, name)) for name in shown)
        rows.append(row | {name: value for name, value in known if value is not None})
    return rows
