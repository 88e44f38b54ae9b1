"""The last hours for the page: figures over time with marks, and what happened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from caughtup.agents.views.copies import present
from caughtup.models.recent.happenings import Happening
from caughtup.models.recent.rings import Series
from caughtup.models.state.cluster import ClusterState

#: What is marked on a chart of time: the rest is in the feed.
_MARKED = frozenset({"rebalance", "verdict", "reassignment"})
_MOST_MARKS = 200


def happening_fields(happening: Happening) -> dict[str, Any]:
    """Describe something that happened."""
    return present(**happening._asdict())


def since_fields(state: ClusterState, group: str) -> dict[str, Any]:
    """Describe since when a group hasn't been ok; nothing of one that is, or that nobody looked at."""
    since = state.recent.not_ok_since(group)
    if since is None:
        return {}
    return {"since_ms": since.at_ms, **({"since_at_least": True} if since.at_least else {})}


def recent_of_group(state: ClusterState, group: str, now_ms: int) -> dict[str, Any]:
    """Describe the last hours of a group; without figures where there are none."""
    happened = list(state.recent.happenings.of(group))
    return {"group": group, **_recent(state.recent.series(group), happened, now_ms)}


def recent_of_cluster(state: ClusterState, now_ms: int) -> dict[str, Any]:
    """Describe the last hours of the cluster."""
    happened = state.recent.happenings.newest(_MOST_MARKS)
    return _recent(state.recent.cluster, happened, now_ms)


def _recent(series: Series | None, happened: Iterable[Happening], now_ms: int) -> dict[str, Any]:
    at_ms, columns = ([], {}) if series is None else series.columns()
    known = {
        name: values
        for name, values in columns.items()
        if any(value is not None for value in values)
    }
    marks = [happening_fields(one) for one in happened if one.kind in _MARKED][:_MOST_MARKS]
    return {"now_ms": now_ms, "at_ms": at_ms, "series": known, "marks": marks[::-1]}
