"""Records of caughtup-pipeline-progress: what a stream tells of itself, out of what Spark knows.

The key is the stream's name, the value one JSON object; what isn't known is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from caughtup.models.records.pipeline_progress import FORMAT, ProgressRecord, State


def encode_progress(state: State, figures: Mapping[str, Any]) -> bytes:
    """Write a record: the state and the figures that are known."""
    return FORMAT.encode(ProgressRecord(FORMAT.schema, state, **figures))


def batch_figures(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Pick out of Spark's progress (its JSON, decoded) what is told of a batch; None: not known.

    ``quarantined`` is this batch's, as a metric of that name counted it (``DataFrame.observe``).
    Rows of Spark's own state count again each time that a job works the batch out.
    """
    sources = progress.get("sources") or []
    operators = progress.get("stateOperators") or []
    observed = (progress.get("observedMetrics") or {}).values()
    # Spark's sum over no rows is null.
    quarantined = [metrics["quarantined"] or 0 for metrics in observed if "quarantined" in metrics]
    seconds = progress["batchDuration"] / 1000
    rows = _rows(progress.get("numInputRows"), sources)
    return {
        "batch": progress["batchId"],
        "batch_seconds": seconds,
        "rows": rows,
        "rows_per_second": rows / seconds if rows is not None and seconds else None,
        "offsets_behind": _distance(sources, "endOffset", "latestOffset"),
        "quarantined": sum(quarantined) if quarantined else None,
        "state_rows": sum(one["numRowsTotal"] for one in operators) if operators else None,
        "watermark_ms": _milliseconds((progress.get("eventTime") or {}).get("watermark")),
    }


def _rows(read: int | None, sources: Sequence[Mapping[str, Any]]) -> int | None:
    """Count a batch's records: Spark counts them again each time that a job works the batch out.

    There can't be more than offsets; how many those were of the very first batch isn't told.
    """
    most = _distance(sources, "startOffset", "endOffset")
    return read if read is None or most is None else min(read, most)


def _distance(sources: Sequence[Mapping[str, Any]], start: str, end: str) -> int | None:
    """Sum up, over all partitions, the offsets between two of a source's positions.

    None where a source doesn't say one of them, as that of its very first batch's start.
    """
    offsets = 0
    for source in sources:
        before, after = source.get(start), source.get(end)
        if not isinstance(before, dict) or not isinstance(after, dict):
            return None
        for topic, partitions in after.items():
            for partition, offset in partitions.items():
                offsets += max(0, offset - before.get(topic, {}).get(partition, offset))
    return offsets if sources else None


def _milliseconds(moment: str | None) -> int | None:
    """Read a moment as Spark writes it; the epoch itself means that there is none yet."""
    if moment is None:
        return None
    return round(datetime.fromisoformat(moment).timestamp() * 1000) or None
