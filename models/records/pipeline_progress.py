"""caughtup-pipeline-progress: how the streams on Spark get on, as they tell."""

from __future__ import annotations

from caughtup.models.pipeline_progress import State, StreamProgress
from caughtup.models.records.decoding import RecordFormat
from caughtup.models.records.fields import Amount, Count, Record, TimeMs, TriggerSeconds
from caughtup.models.records.keys import decode_group


class ProgressRecord(Record, omit_defaults=True):
    """What a stream tells of itself; what isn't known is absent. A tombstone forgets it.

    The key is the stream's name; the fields are StreamProgress's.
    """

    state: State
    trigger_seconds: TriggerSeconds | None = None
    batch: Count | None = None
    batch_seconds: TriggerSeconds | None = None
    rows: Count | None = None
    rows_per_second: Amount | None = None
    offsets_behind: Count | None = None
    quarantined: Count | None = None
    state_rows: Count | None = None
    watermark_ms: TimeMs | None = None
    why: str | None = None

    def to_progress(self, heard_ms: int) -> StreamProgress:
        """Return what was told, as heard at a moment (ms)."""
        return StreamProgress(
            self.state,
            heard_ms,
            self.trigger_seconds,
            self.batch,
            self.batch_seconds,
            self.rows,
            self.rows_per_second,
            self.offsets_behind,
            self.quarantined,
            self.state_rows,
            self.watermark_ms,
            self.why,
        )


FORMAT = RecordFormat(ProgressRecord, schemas=(1,), most_bytes=64 << 10)


def read_progress(key: bytes | None, value: bytes | None) -> tuple[str, ProgressRecord | None]:
    """Decode a record: the stream's name, and what it tells; None: it is to be forgotten.

    Raises RefusedError.
    """
    stream = decode_group(key)
    return stream, None if value is None else FORMAT.decode(value)
