"""What a stream tells of itself, out of progress as Spark 4.0 writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.records.pipeline_progress import FORMAT, STATES, ProgressRecord
from caughtup.models.wire.bounds import LATEST_MS
from caughtup.pipelines.progress import batch_figures

#: As a real stream wrote it, less what isn't read.
PROGRESS: dict[str, Any] = json.loads("""{
  "name": "readings", "timestamp": "2026-11-21T22:49:00.500Z", "batchId": 7, "batchDuration": 400,
  "numInputRows": 12, "inputRowsPerSecond": 0.0, "processedRowsPerSecond": 30.0,
  "eventTime": {"watermark": "2026-11-21T22:48:00.250Z"},
  "stateOperators": [
    {"operatorName": "dedupe", "numRowsTotal": 40}, {"operatorName": "dedupe", "numRowsTotal": 2}],
  "sources": [{"description": "KafkaV2[Subscribe[readings]]",
    "startOffset": {"readings": {"0": 20, "1": 24}},
    "endOffset": {"readings": {"0": 26, "1": 30}},
    "latestOffset": {"readings": {"0": 26, "1": 35}, "new": {"0": 4}}}],
  "sink": {"description": "ForeachBatchSink", "numOutputRows": -1},
  "observedMetrics": {"decoded": {"quarantined": 3, "sample": null}, "other": {"rows": 1}}
}""")


def test_a_batch_is_told_with_all_that_spark_knows_of_it() -> None:
    assert batch_figures(PROGRESS) == ProgressRecord(
        FORMAT.schema,
        "running",
        batch=7,
        batch_seconds=0.4,
        rows=12,
        rows_per_second=30.0,
        offsets_behind=5,  # what is new in the log is none of this batch's partitions
        quarantined=3,
        state_rows=42,
        watermark_ms=1_795_301_280_250,
    )


def test_a_batch_in_which_nothing_was_counted_has_no_quarantined_record() -> None:
    observed = {"decoded": {"events": None, "quarantined": None, "sample": None}}
    assert batch_figures({**PROGRESS, "observedMetrics": observed}).quarantined == 0


def test_records_that_a_job_read_twice_count_once() -> None:
    figures = batch_figures({**PROGRESS, "numInputRows": 24})
    assert (figures.rows, figures.rows_per_second) == (12, 30.0)


@pytest.mark.parametrize("unknown", [None, "latest"])
def test_what_a_source_does_not_say_is_not_known(unknown: Any) -> None:
    source = {**PROGRESS["sources"][0], "startOffset": unknown, "latestOffset": unknown}
    figures = batch_figures({**PROGRESS, "numInputRows": 24, "sources": [source]})
    assert (figures.rows, figures.offsets_behind) == (24, None)


def test_a_stream_without_kafka_state_watermark_or_counts_has_few_figures() -> None:
    bare = {"batchId": 0, "batchDuration": 0, "numInputRows": 0, "eventTime": {}, "sources": []}
    known = ProgressRecord(FORMAT.schema, "running", batch=0, batch_seconds=0.0, rows=0)
    assert batch_figures(bare) == known
    none_yet = {**bare, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}
    assert batch_figures(none_yet).watermark_ms is None


counts = st.none() | st.integers(0, 2**53)
amounts = st.none() | st.floats(0, 1e12)
seconds = st.none() | st.floats(0, 366 * 86_400)


@given(
    st.builds(
        ProgressRecord,
        state=st.sampled_from(STATES),
        schema=st.just(FORMAT.schema),
        trigger_seconds=seconds,
        batch=counts,
        batch_seconds=seconds,
        rows=counts,
        rows_per_second=amounts,
        offsets_behind=counts,
        quarantined=counts,
        state_rows=counts,
        watermark_ms=st.none() | st.integers(0, LATEST_MS),
        why=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    )
)
@settings(print_blob=True)
def test_the_service_reads_what_the_jobs_write(told: ProgressRecord) -> None:
    assert FORMAT.decode(FORMAT.encode(told)) == told
