"""Panels of Spark streams: the data pipeline's, and other queries with checkpoints."""

from __future__ import annotations

from typing import Any

from scripts.dashboards.links import GROUPS, SPARK
from scripts.dashboards.panels import lines


def spark() -> tuple[Any, ...]:
    """Return the panels of streams: ours by their reports, others by their checkpoints."""

    def of(title: str, description: str, *series: tuple[str, str], unit: str = "short") -> Any:
        return lines(title, description, *series, links=SPARK, unit=unit)

    stream = "{{stream}}"
    query = "caughtup_spark_query_%s_timestamp_seconds{CLUSTER}"
    return (
        of(
            "Streams by status",
            "How many streams of the data pipeline have which status. Late: it has not reported "
            "for three triggers, or for three times as long as its last batch took. The page says "
            "why a stream failed.",
            ("sum by (status) (caughtup_pipeline_status{CLUSTER})", "{{status}}"),
        ),
        of(
            "Offsets behind",
            "Between the end of a stream's last batch and the ends of the logs, over all "
            "partitions.",
            ("caughtup_pipeline_offsets_behind{CLUSTER}", stream),
        ),
        of(
            "Last batch",
            "How long each stream's last batch took. One that takes longer than its trigger falls "
            "behind.",
            ("caughtup_pipeline_batch_seconds{CLUSTER}", stream),
            unit="s",
        ),
        of(
            "Records a second",
            "Records that each stream's last batch read in a second.",
            ("caughtup_pipeline_rows_per_second{CLUSTER}", stream),
            ("rate(caughtup_pipeline_rows_total{CLUSTER}[5m])", "{{stream}}, over 5 minutes"),
        ),
        of(
            "Since streams reported",
            "Each stream reports at every trigger, with records or without.",
            ("caughtup_pipeline_progress_age_seconds{CLUSTER}", stream),
            unit="s",
        ),
        of(
            "Quarantined",
            "Records in the last hour that a stream could not decode. They are kept, with their "
            "place in the log, in the table quarantine.",
            ("increase(caughtup_pipeline_quarantined_total{CLUSTER}[1h])", stream),
        ),
        of(
            "Rows of state",
            "Rows that each stream keeps from batch to batch.",
            ("caughtup_pipeline_state_rows{CLUSTER}", stream),
        ),
        lines(
            "Since Spark's queries committed a batch",
            "By their checkpoints. A query that has nothing to read may commit nothing.",
            (f"time() - {query % 'last_batch'}", "{{group}}"),
            links=GROUPS,
            unit="s",
        ),
        lines(
            "Batches in flight",
            "How long each batch of Spark's that is not committed yet has run.",
            (f"time() - {query % 'batch_started'}", "{{group}}"),
            links=GROUPS,
            unit="s",
        ),
        of(
            "Checkpoints that can't be read",
            "The lag of their queries is unknown.",
            ("sum by (problem) (caughtup_spark_checkpoint_problems{CLUSTER})", "{{problem}}"),
        ),
    )
