"""Metrics of Spark's queries, beside those that they have as any group: their batches."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.agents.web.metrics.families import Family, Scrape

_QUERY = ("cluster", "group")


def _queries(scrape: Scrape) -> list[str]:
    return sorted(scrape.state.spark.queries)


def _moment(family: Family, scrape: Scrape, group: str, at_ms: int | None) -> Iterator[bytes]:
    if at_ms is not None:
        yield family.line((scrape.state.cluster, group), at_ms / 1000)


def _committed(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    return _moment(family, scrape, group, scrape.state.spark.queries[group].batch_ms)


def _started(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    return _moment(family, scrape, group, scrape.state.spark.queries[group].last.started_ms)


def _problems(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for path, problem in sorted(scrape.state.spark.problems.items()):
        yield family.line((scrape.state.cluster, path, problem.reason), 1)


SPARK_FAMILIES = (
    Family(
        "caughtup_spark_query_last_batch_timestamp_seconds",
        "When the query last committed a batch",
        _QUERY,
        _committed,
        _queries,
    ),
    Family(
        "caughtup_spark_query_batch_started_timestamp_seconds",
        "When the batch that is not committed yet began",
        _QUERY,
        _started,
        _queries,
    ),
    Family(
        "caughtup_spark_checkpoint_problems",
        "1 for a checkpoint that cannot be read, with the problem",
        ("cluster", "checkpoint", "problem"),
        _problems,
    ),
)
