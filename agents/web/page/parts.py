"""The other views of the page: reassignments, Connect, Spark, health, recent hours, everything."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence

from caughtup.agents.process.health import Health
from caughtup.agents.web.page.head import (
    Head,
    HeadWithFailures,
    HeadWithReassignments,
    RefusedOfTopic,
    encoded,
    failure_fields,
    reassignment_fields,
    view_with_head,
)
from caughtup.models.faults import Fault, SetAside
from caughtup.models.pipeline_progress import StreamLine, stream_lines
from caughtup.models.recent.happenings import Happening, Kind
from caughtup.models.recent.rings import Series
from caughtup.models.records.fields import Part
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.shown.applications import ApplicationView, application_view
from caughtup.models.shown.connect import connect_view
from caughtup.models.shown.connect_lines import ConnectView
from caughtup.models.shown.groups import CheckpointProblem, GroupLine, KeptGroupLines
from caughtup.models.state.cluster import ClusterState

_FEED_SHOWN = 100


class ReassignmentsView(HeadWithReassignments, kw_only=True):
    """Reassignments, and their recent events."""

    feed: Sequence[Happening]


class TransactionsView(Head, kw_only=True):
    """The open transactions that hold something back, and recent events of those that hang.

    ``transactions_missing`` is what could not be observed, in sentences; ``partitions_left_out`` the
    number of partitions that were not asked for.
    """

    transactions: Sequence[OpenTransaction]
    transactions_missing: Sequence[str]
    partitions_left_out: int
    feed: Sequence[Happening]


class ConnectsView(Head, kw_only=True):
    """Every Connect group."""

    connect: Sequence[ConnectView]


class StreamsView(Head, kw_only=True):
    """The streams of the jobs on Spark."""

    streams: Sequence[StreamLine]


class HealthView(Head, kw_only=True):
    """The service's health: a sentence for each part's last turn, and failures."""

    parts: Sequence[str]
    unhealthy: Sequence[str]
    refused: Sequence[RefusedOfTopic]
    faults: Sequence[Fault]
    checkpoint_problems: Sequence[CheckpointProblem]
    set_aside: Sequence[SetAside]
    feed: Sequence[Happening]


def reassignments_steps(
    state: ClusterState, health: Health, now_ms: int
) -> Generator[None, None, ReassignmentsView]:
    """Return reassignments, and their recent events."""
    yield
    return view_with_head(
        ReassignmentsView,
        state,
        health,
        now_ms,
        **reassignment_fields(state, now_ms),
        feed=_feed(state, "reassignment"),
    )


def transactions_steps(
    state: ClusterState, health: Health, now_ms: int
) -> Generator[None, None, TransactionsView]:
    """Return the open transactions that hold something back."""
    yield
    missing = state.transactions.missing
    return view_with_head(
        TransactionsView,
        state,
        health,
        now_ms,
        transactions=list(state.open_transactions(now_ms)),
        transactions_missing=missing.reasons,
        partitions_left_out=missing.partitions,
        feed=_feed(state, "transaction"),
    )


def connect_views(state: ClusterState, now_ms: int) -> Generator[None, None, list[ConnectView]]:
    """Return every Connect group, yielding between steps; one that fails is left out."""
    groups = []
    for group in sorted(state.connect.groups):
        with state.faults.isolated("page", group, now_ms):
            described = yield from connect_view(state, group, now_ms)
            if described is not None:
                groups.append(encoded(described))
        yield
    return groups


def connect_steps(
    state: ClusterState, health: Health, now_ms: int
) -> Generator[None, None, ConnectsView]:
    """Return every Connect group."""
    groups = yield from connect_views(state, now_ms)
    return view_with_head(ConnectsView, state, health, now_ms, connect=groups)


def streams_steps(
    state: ClusterState, health: Health, now_ms: int
) -> Generator[None, None, StreamsView]:
    """Return the streams of the jobs on Spark."""
    yield
    return view_with_head(
        StreamsView, state, health, now_ms, streams=stream_lines(state.pipeline, now_ms)
    )


def health_steps(
    state: ClusterState, health: Health, now_ms: int
) -> Generator[None, None, HealthView]:
    """Return the service's health, and failures."""
    yield
    return view_with_head(
        HealthView,
        state,
        health,
        now_ms,
        parts=health.pulses.last_turns(),
        unhealthy=health.unhealthy(),
        **failure_fields(state),
        feed=_feed(state, "service"),
    )


def _feed(state: ClusterState, kind: Kind) -> list[Happening]:
    happened = [one for one in state.recent.happenings.newest(1_000) if one.kind == kind]
    return happened[:_FEED_SHOWN]


#: The kinds of events that are marked on charts; the others are in the feed only.
_MARKED = frozenset({"rebalance", "verdict", "reassignment"})
MOST_MARKS = 200


class RecentView(Part, kw_only=True, omit_defaults=True):
    """The last hours of a group, or of the cluster.

    ``series`` has by name a figure for each of ``at_ms``, null if it is unknown.
    """

    group: str | None = None
    now_ms: int
    at_ms: list[int]
    series: dict[str, list[float | None]]
    marks: list[Happening]


def recent_of_group(state: ClusterState, group: str, now_ms: int) -> RecentView:
    """Return the last hours of a group; without figures if none are kept."""
    happened = list(state.recent.happenings.of(group))
    return _recent(group, state.recent.series(group), happened, now_ms)


def recent_of_cluster(state: ClusterState, now_ms: int) -> RecentView:
    """Return the last hours of the cluster."""
    happened = state.recent.happenings.newest(MOST_MARKS)
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
    marks = [one for one in happened if one.kind in _MARKED][:MOST_MARKS]
    return RecentView(group=group, now_ms=now_ms, at_ms=at_ms, series=known, marks=marks[::-1])


SCHEMA = 1


class WholeView(HeadWithFailures, kw_only=True):
    """Every group, application, Connect group and stream; ``groups_not_told`` counts omitted ones."""

    groups: Sequence[GroupLine]
    groups_not_told: Mapping[str, int] = {}
    applications: Sequence[ApplicationView]
    connect: Sequence[ConnectView] = ()
    streams: Sequence[StreamLine] = ()


def whole_steps(
    state: ClusterState,
    health: Health,
    now_ms: int,
    limited: int = 0,
    lines: KeptGroupLines | None = None,
) -> Generator[None, None, WholeView]:
    """Return the whole cluster at ``now_ms``, for ``/api/state`` and ``caughtup top``.

    ``limited`` is the number of groups with fewer series in metrics; ``lines`` as in
    ``overview_steps``. Yields between steps, when other work may change the state. What fails is left
    out, and among the faults.
    """
    lines = KeptGroupLines(state) if lines is None else lines
    groups, applications = [], []
    for group in state.group_names():
        with state.faults.isolated("page", group, now_ms):
            groups.append(encoded(lines.of(group)))
        yield
    for group in sorted(state.applications):
        with state.faults.isolated("page", group, now_ms):
            application = state.applications.get(group)
            if application is not None:
                view = yield from application_view(state, group, application, now_ms)
                applications.append(encoded(view))
        yield
    connect = yield from connect_views(state, now_ms)
    not_told = {**state.watching.counts(), "limited": limited}
    return view_with_head(
        WholeView,
        state,
        health,
        now_ms,
        schema=SCHEMA,
        **failure_fields(state),
        groups=groups,
        groups_not_told=not_told,
        applications=applications,
        connect=connect,
        streams=stream_lines(state.pipeline, now_ms),
        **reassignment_fields(state, now_ms),
    )
