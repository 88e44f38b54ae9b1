"""Records of caughtup-pipeline-progress: taken, withdrawn, skipped when malformed, and shown."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from caughtup.agents.pipeline_metrics import pipeline_families
from caughtup.agents.pipeline_progress import apply_record, progress_rows
from caughtup.models.pipeline_progress import PipelineProgress, StreamProgress

AT_MS = 9_000
TOLD: dict[str, Any] = {
    "schema": 1,
    "state": "running",
    "trigger_seconds": 10.0,
    "batch": 3,
    "batch_seconds": 0.5,
    "rows": 20,
    "rows_per_second": 40.0,
    "offsets_behind": 6,
    "quarantined": 1,
    "state_rows": 4,
}


def told(**changes: Any) -> bytes:
    return json.dumps({**TOLD, **changes}).encode()


def samples(progress: PipelineProgress, now_ms: int) -> dict[tuple[str, ...], float]:
    """Give every sample by its name and labels, but for the cluster's."""
    families = pipeline_families("c", progress, now_ms)
    return {
        (sample.name.removeprefix("caughtup_pipeline_"), *list(sample.labels.values())[1:]): (
            sample.value
        )
        for family in families
        for sample in family.samples
    }


def test_what_a_stream_told_is_of_the_time_at_which_the_broker_got_it() -> None:
    progress = PipelineProgress()
    apply_record(progress, b"history", told(later_field="ignored"), AT_MS)
    ((name, one),) = progress.streams()
    assert (name, one.heard_ms) == ("history", AT_MS)
    assert one == StreamProgress("running", AT_MS, 10.0, 3, 0.5, 20, 40.0, 6, 1, 4)
    apply_record(progress, b"history", None, AT_MS)
    assert list(progress.streams()) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"history", b"{"),
        (b"history", b"[]"),
        (b"history", told(state="dancing")),
        (b"history", told(rows=-1)),
        (b"history", told(batch_seconds="long")),
        (b"history", b"[" * 100_000),
        (b"\xff", told()),
    ],
)
def test_a_malformed_record_is_logged_and_skipped(
    key: bytes, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    progress = PipelineProgress()
    apply_record(progress, b"rates", told(), AT_MS)
    with caplog.at_level(logging.WARNING):
        apply_record(progress, key, value, AT_MS)
    assert [name for name, _ in progress.streams()] == ["rates"]
    (record,) = caplog.records
    assert "skipped a record of the pipeline's progress" in record.getMessage()


def test_the_page_and_the_metrics_say_what_was_told_and_when() -> None:
    progress = PipelineProgress()
    apply_record(progress, b"rates", told(), AT_MS)
    apply_record(progress, b"history", b'{"state": "failed", "why": "no space"}', AT_MS)
    now_ms = AT_MS + 2_500
    shown = {k: v for k, v in TOLD.items() if k not in ("schema", "state", "trigger_seconds")}
    assert progress_rows(progress, now_ms) == [
        {"stream": "history", "status": "failed", "heard_ms": AT_MS, "why": "no space"},
        {"stream": "rates", "status": "running", "heard_ms": AT_MS, **shown},
    ]
    assert samples(progress, now_ms) == {
        ("status", "history", "running"): 0,
        ("status", "history", "late"): 0,
        ("status", "history", "stopped"): 0,
        ("status", "history", "failed"): 1,
        ("status", "rates", "running"): 1,
        ("status", "rates", "late"): 0,
        ("status", "rates", "stopped"): 0,
        ("status", "rates", "failed"): 0,
        ("progress_age_seconds", "history"): 2.5,
        ("progress_age_seconds", "rates"): 2.5,
        ("batch_seconds", "rates"): 0.5,
        ("rows_per_second", "rates"): 40.0,
        ("offsets_behind", "rates"): 6,
        ("state_rows", "rates"): 4,
        ("quarantined_total", "rates"): 1,
    }


def test_a_stream_that_is_no_longer_heard_is_late() -> None:
    progress = PipelineProgress()
    apply_record(progress, b"rates", told(), AT_MS)
    late_ms = AT_MS + 60_001
    assert progress_rows(progress, late_ms)[0]["status"] == "late"
    assert samples(progress, late_ms)["status", "rates", "late"] == 1
    assert samples(progress, late_ms)["status", "rates", "running"] == 0
