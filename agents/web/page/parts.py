"""The other addresses of the page: reassignments, Connect, streams on Spark, the service's health."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from caughtup.agents.process.health import Health
from caughtup.agents.web.page.head import Head, Movements, encoded, head_of, left_out, movements
from caughtup.models.faults.isolation import Fault
from caughtup.models.faults.set_aside import SetAside
from caughtup.models.pipeline_progress import StreamLine, stream_lines
from caughtup.models.recent.happenings import Happening, Kind
from caughtup.models.shown.connect import connect_view
from caughtup.models.shown.connect_lines import ConnectView
from caughtup.models.shown.groups import CheckpointProblem
from caughtup.models.state.cluster import ClusterState

_FEED_SHOWN = 100


class ReassignmentsView(Movements, kw_only=True):
    """Reassignments, and what happened to them of late."""

    feed: Sequence[Happening]


class ConnectsView(Head, kw_only=True):
    """Every Connect group."""

    connect: Sequence[ConnectView]


class StreamsView(Head, kw_only=True):
    """The streams of the data pipeline on Spark."""

    streams: Sequence[StreamLine]


class HealthView(Head, kw_only=True):
    """How the service itself is doing: its parts' last turns (ms), and what it left out."""

    parts: Mapping[str, int]
    unhealthy: Sequence[str]
    refused: Sequence[object]
    faults: Sequence[Fault]
    checkpoint_problems: Sequence[CheckpointProblem]
    set_aside: Sequence[SetAside]
    feed: Sequence[Happening]


def reassignments_steps(
    state: ClusterState, health: Health, now_ms: int
) -> Generator[None, None, ReassignmentsView]:
    """Return reassignments, and what happened to them of late."""
    yield
    return head_of(
        ReassignmentsView,
        state,
        health,
        now_ms,
        **movements(state, now_ms),
        feed=_feed(state, "reassignment"),
    )


def connect_views(state: ClusterState, now_ms: int) -> Generator[None, None, list[ConnectView]]:
    """Return every Connect group, in steps; one that fails is left out."""
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
    return head_of(ConnectsView, state, health, now_ms, connect=groups)


def streams_steps(
    state: ClusterState, health: Health, now_ms: int
) -> Generator[None, None, StreamsView]:
    """Return the streams of the data pipeline on Spark."""
    yield
    return head_of(StreamsView, state, health, now_ms, streams=stream_lines(state.pipeline, now_ms))


def health_steps(
    state: ClusterState, health: Health, now_ms: int
) -> Generator[None, None, HealthView]:
    """Return how the service itself is doing, and what it left out."""
    yield
    return head_of(
        HealthView,
        state,
        health,
        now_ms,
        parts=health.pulses.last_turns(),
        unhealthy=health.unhealthy(),
        **left_out(state),
        feed=_feed(state, "service"),
    )


def _feed(state: ClusterState, kind: Kind) -> list[Happening]:
    happened = [one for one in state.recent.happenings.newest(1_000) if one.kind == kind]
    return happened[:_FEED_SHOWN]
