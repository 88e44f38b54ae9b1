"""Streams on Spark as JSON, for the page. Unknown figures are absent."""

from __future__ import annotations

from typing import Any

from caughtup.agents.views.copies import present
from caughtup.models.pipeline_progress import StreamProgressTable

_FIGURES = (
    "batch",
    "batch_seconds",
    "rows",
    "rows_per_second",
    "offsets_behind",
    "quarantined",
    "state_rows",
    "watermark_ms",
    "why",
)


def progress_rows(progress: StreamProgressTable, now_ms: int) -> list[dict[str, Any]]:
    """Describe each stream at a moment (ms), in the order of their names."""
    return [
        {"stream": stream, "status": last.status(now_ms), "heard_ms": last.heard_ms}
        | present(**{name: getattr(last.record, name) for name in _FIGURES})
        for stream, last in progress.streams()
    ]
