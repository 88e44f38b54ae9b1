"""Records of caughtup-pipeline-progress: taken, withdrawn, refused when malformed, and shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from caughtup.agents.topics.reports import pipeline_progress
from caughtup.agents.web.metrics.spark import PIPELINE_FAMILIES
from caughtup.models.pipeline_progress import StreamProgress, StreamProgressTable, stream_lines
from caughtup.models.records.fields import json_values
from caughtup.models.records.pipeline_progress import ProgressRecord
from tests.support.observability.scraping import samples_of
from tests.support.own_topics.malformed import malformed
from tests.support.states import cluster_state

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


def lines(progress: StreamProgressTable, now_ms: int) -> list[dict[str, Any]]:
    return [json_values(line) for line in stream_lines(progress, now_ms)]


def samples(progress: StreamProgressTable, now_ms: int) -> dict[tuple[str, ...], float]:
    """Return every sample by its name, its stream and its status if it has one."""
    state = cluster_state()
    state.pipeline = progress
    return {
        (name.removeprefix("caughtup_pipeline_"), labels["stream"])
        + ((labels["status"],) if "status" in labels else ()): value
        for name, labels, value in samples_of(PIPELINE_FAMILIES, state, now_ms)
    }


def test_what_a_stream_told_is_of_the_time_at_which_the_broker_got_it() -> None:
    state = cluster_state()
    progress = state.pipeline
    pipeline_progress.apply_record(state, b"history", told(later_field="ignored"), AT_MS)
    ((name, one),) = progress.streams()
    assert (name, one.heard_ms) == ("history", AT_MS)
    assert one == StreamProgress(
        AT_MS, ProgressRecord(1, "running", 10.0, 3, 0.5, 20, 40.0, 6, 1, 4)
    )
    pipeline_progress.apply_record(state, b"history", None, AT_MS)
    assert list(progress.streams()) == []


@pytest.mark.parametrize(
    ("reason", "key", "value"),
    [
        *malformed(b"history", told()),
        ("bad_type", b"history", told(state="dancing")),
        ("bad_type", b"history", told(rows=-1)),
        ("bad_type", b"history", told(rows=2**63)),
        ("bad_type", b"history", told(batch_seconds="long")),
        ("bad_type", b"history", b'{"state": "running"}'),
        pytest.param("too_large", b"history", told(why="x" * 70_000), id="too large"),
        ("bad_key", b"\xff", told()),
        ("bad_key", None, told()),
    ],
)
def test_a_malformed_record_is_refused_with_its_reason(
    reason: str, key: bytes | None, value: bytes
) -> None:
    state = cluster_state()
    pipeline_progress.apply_record(state, b"rates", told(), AT_MS)
    pipeline_progress.apply_record(state, key, value, AT_MS)
    assert [name for name, _ in state.pipeline.streams()] == ["rates"]
    assert state.refused.counts == {("pipeline-progress", reason): 1}
    assert state.faults.newest() == []


def test_the_page_and_the_metrics_say_what_was_told_and_when() -> None:
    state = cluster_state()
    progress = state.pipeline
    pipeline_progress.apply_record(state, b"rates", told(), AT_MS)
    pipeline_progress.apply_record(
        state, b"history", b'{"schema": 1, "state": "failed", "why": "no space"}', AT_MS
    )
    now_ms = AT_MS + 2_500
    failed = {"schema": 1, "state": "failed", "why": "no space"}
    assert lines(progress, now_ms) == [
        {"stream": "history", "status": "failed", "heard_ms": AT_MS, **failed},
        {"stream": "rates", "status": "running", "heard_ms": AT_MS, **TOLD},
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
        ("rows_total", "history"): 0.0,
        ("rows_total", "rates"): 20.0,
        ("offsets_behind", "rates"): 6,
        ("state_rows", "rates"): 4,
        ("quarantined_total", "rates"): 1,
    }


def test_a_stream_that_is_no_longer_heard_is_late() -> None:
    state = cluster_state()
    progress = state.pipeline
    pipeline_progress.apply_record(state, b"rates", told(), AT_MS)
    late_ms = AT_MS + 60_001
    assert lines(progress, late_ms)[0]["status"] == "late"
    assert samples(progress, late_ms)["status", "rates", "late"] == 1
    assert samples(progress, late_ms)["status", "rates", "running"] == 0
