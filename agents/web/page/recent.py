"""The last hours for the page: figures over time with marks, and what happened."""

from __future__ import annotations

from collections.abc import Iterable

from caughtup.models.recent.happenings import Happening
from caughtup.models.recent.rings import Series
from caughtup.models.records.fields import Part
from caughtup.models.state.cluster import ClusterState

#: What is marked on a chart of time: the rest is in the feed.
_MARKED = frozenset({"rebalance", "verdict", "reassignment"})
_MOST_MARKS = 200


class RecentView(Part, kw_only=True, omit_defaults=True):
    """The last hours of a group, or of the cluster.

    ``series``: figures by name, a value for each of ``at_ms``, null where it wasn't known.
    """

    group: str | None = None
    now_ms: int
    at_ms: list[int]
    series: dict[str, list[float | None]]
    marks: list[Happening]


def recent_of_group(state: ClusterState, group: str, now_ms: int) -> RecentView:
    """Return the last hours of a group; without figures where there are none."""
    happened = list(state.recent.happenings.of(group))
    return _recent(group, state.recent.series(group), happened, now_ms)


def recent_of_cluster(state: ClusterState, now_ms: int) -> RecentView:
    """Return the last hours of the cluster."""
    happened = state.recent.happenings.newest(_MOST_MARKS)
    return _recent(None, state.recent.cluster, happened, now_ms)


def _recent(
    group: str | None, series: Series | None, happened: Iterable[Happening], now_ms: int
) -> RecentView:
    at_ms, columns = ([], {}) if series is None else series.columns()
    known = {
        name: values
        for name, values in columns.items()
        if any(value is not None for value in values)
    }
    marks = [one for one in happened if one.kind in _MARKED][:_MOST_MARKS]
    return RecentView(group=group, now_ms=now_ms, at_ms=at_ms, series=known, marks=marks[::-1])
