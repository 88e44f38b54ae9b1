"""caughtup-pipeline-progress: how the streams on Spark get on, as they tell."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import faust
import msgspec

from caughtup.agents.own_records import Slice
from caughtup.models.pipeline_progress import PipelineProgress, State, StreamProgress

log = logging.getLogger(__name__)

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Amount = Annotated[float, msgspec.Meta(ge=0)]


class ProgressRecord(msgspec.Struct):
    """The value on caughtup-pipeline-progress; its fields are StreamProgress's."""

    state: State
    trigger_seconds: _Amount | None = None
    batch: _Count | None = None
    batch_seconds: _Amount | None = None
    rows: _Count | None = None
    rows_per_second: _Amount | None = None
    offsets_behind: _Count | None = None
    quarantined: _Count | None = None
    state_rows: _Count | None = None
    watermark_ms: int | None = None
    why: str | None = None


_decode = msgspec.json.Decoder(ProgressRecord).decode


def pipeline_progress(app: faust.App, channel: faust.ChannelT, progress: PipelineProgress) -> None:
    """Register the pipeline-progress agent: the newest of each stream, kept."""

    @app.agent(channel, name="pipeline_progress")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                apply_record(progress, record.key, record.value, record.at_ms)


def apply_record(
    progress: PipelineProgress, key: bytes | None, value: bytes | None, at_ms: int
) -> None:
    """Take one record of caughtup-pipeline-progress; a malformed one is logged and skipped.

    ``at_ms`` is the record's timestamp, which the broker gives it when it is appended.
    """
    try:
        stream = (key or b"").decode()
        told = None if value is None else stream_progress(value, at_ms)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        log.warning("skipped a record of the pipeline's progress, key %r: %s", key, error)
        return
    progress.apply(stream, told)


def stream_progress(value: bytes, at_ms: int) -> StreamProgress:
    """Read a record's value. Raises MsgspecError or RecursionError."""
    return StreamProgress(heard_ms=at_ms, **msgspec.structs.asdict(_decode(value)))


def progress_rows(progress: PipelineProgress, now_ms: int) -> list[dict[str, Any]]:
    """Say of every stream what the page shows; what isn't known is left out."""
    rows = []
    for stream, told in progress.streams():
        row = {"stream": stream, "status": told.status(now_ms), "heard_ms": told.heard_ms}
        shown = ("batch", "batch_seconds", "rows", "rows_per_second", "offsets_behind")
        shown += ("quarantined", "state_rows", "watermark_ms", "why")
        known = ((name, getattr(told, name)) for name in shown)
        rows.append(row | {name: value for name, value in known if value is not None})
    return rows
