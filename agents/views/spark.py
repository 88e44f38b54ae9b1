"""Spark's queries as JSON objects, for the page and the terminal. Unknown figures are absent."""

from __future__ import annotations

from typing import Any

from caughtup.agents.views.copies import present
from caughtup.models.spark_queries.look import BEGINNING
from caughtup.models.spark_queries.table import SparkQuery
from caughtup.models.state.cluster import ClusterState


def query_fields(state: ClusterState, group: str) -> dict[str, Any]:
    """Describe the query that a group is, in fields of its group's summary; none of another one's.

    ``batch`` is the last one that was committed, and ``batch_ms`` when that was; ``started_ms`` is
    when the batch in flight began.
    """
    query = state.spark.queries.get(group)
    return {} if query is None else _fields(query)


def _fields(query: SparkQuery) -> dict[str, Any]:
    look = query.last
    batch = None if look.newest == BEGINNING else look.newest
    return present(
        checkpoint=query.checkpoint,
        query_id=look.query_id,
        batch=batch,
        batch_ms=None if batch is None else query.committed_ms,
        started_ms=look.started_ms,
    )


def checkpoint_problems(state: ClusterState) -> list[dict[str, str]]:
    """List the checkpoints, and folders of them, that can't be read, and why."""
    return [
        {"checkpoint": path, "problem": of.reason, "why": of.message}
        for path, of in sorted(state.spark.problems.items())
    ]
