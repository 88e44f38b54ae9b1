"""Copies of tasks as JSON, for the page and the lag table. Unknown figures are absent."""

from __future__ import annotations

from math import isfinite
from typing import Any

from caughtup.models.copies.catch_up_rates import SOURCES, TOLD_AS
from caughtup.models.copies.watch import CopyWatch
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.ids import CopyKey
from caughtup.models.state.cluster import ClusterState


def present(**fields: Any) -> dict[str, Any]:
    """Make an object of the fields that are known."""
    return {name: value for name, value in fields.items() if value is not None}


def finite(seconds: float) -> float | None:
    """Return a time (s) as JSON can have it, None for never, which it has no number for."""
    return seconds if isfinite(seconds) else None


def copy_fields(copy: TaskCopy, watch: CopyWatch | None) -> dict[str, Any]:
    """Return the fields of a task's copy that page and lag table share; ``watch`` assessed it.

    ``rates``: who measured its pace, ``spark`` or the service from its ``own`` positions.
    """
    assessed = None if watch is None else watch.copies.get(CopyKey(copy.process, copy.task))
    eta = assessed.figures.eta if assessed else None
    pace = assessed.figures.pace if assessed else None
    return present(
        process=copy.process,
        role=copy.role,
        lag=copy.lag,
        provenance=copy.provenance,
        as_of_ms=copy.as_of_ms,
        eta_seconds=finite(eta.seconds) if eta else None,
        rates=TOLD_AS[pace] if pace else None,
        verdict=assessed.verdict if assessed else None,
        why=assessed.reason if assessed else None,
    )


def rates_view(state: ClusterState, watch: CopyWatch | None, now_ms: int) -> dict[str, Any]:
    """Count copies by who measured their pace, and add since when Spark is silent."""
    counts = {} if watch is None else watch.rate_sources()
    silent = state.rates.live(now_ms) is False
    return present(
        **{source: counts[source] for source in SOURCES if source in counts},
        silent_since_ms=state.rates.newest_ms if silent else None,
    )
