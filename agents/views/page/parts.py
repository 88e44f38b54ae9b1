"""The other addresses of the page: reassignments, Connect, streams on Spark, the service's health."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from caughtup.agents.process.health import Health
from caughtup.agents.views.connect_lines import connect_view
from caughtup.agents.views.page.head import encoded, head_fields, left_out
from caughtup.agents.views.page.movements import reassignment_view
from caughtup.agents.views.page.recent import happening_fields
from caughtup.agents.views.pipeline import progress_rows
from caughtup.models.recent.happenings import Kind
from caughtup.models.state.cluster import ClusterState

_Steps = Generator[None, None, dict[str, Any]]
_FEED_SHOWN = 100


def reassignments_steps(state: ClusterState, health: Health, now_ms: int) -> _Steps:
    """Describe reassignments, and what happened to them of late."""
    yield
    return {
        **head_fields(state, health, now_ms),
        **reassignment_view(state, now_ms),
        "feed": _feed(state, "reassignment"),
    }


def connect_views(state: ClusterState, now_ms: int) -> Generator[None, None, list[msgspec.Raw]]:
    """Describe every Connect group, in steps; one that fails is left out."""
    groups = []
    for group in sorted(state.connect.groups):
        with state.faults.isolated("page", group, now_ms):
            described = yield from connect_view(state, group, now_ms)
            if described is not None:
                groups.append(encoded(described))
        yield
    return groups


def connect_steps(state: ClusterState, health: Health, now_ms: int) -> _Steps:
    """Describe every Connect group."""
    groups = yield from connect_views(state, now_ms)
    return {**head_fields(state, health, now_ms), "connect": groups}


def streams_steps(state: ClusterState, health: Health, now_ms: int) -> _Steps:
    """Describe the streams of the data pipeline on Spark."""
    yield
    streams = progress_rows(state.pipeline, now_ms)
    return {**head_fields(state, health, now_ms), "streams": streams}


def health_steps(state: ClusterState, health: Health, now_ms: int) -> _Steps:
    """Describe how the service itself is doing, and what it left out."""
    yield
    return {
        **head_fields(state, health, now_ms),
        "parts": health.pulses.last_turns(),
        "unhealthy": health.unhealthy(),
        **left_out(state),
        "feed": _feed(state, "service"),
    }


def _feed(state: ClusterState, kind: Kind) -> list[dict[str, Any]]:
    happened = [one for one in state.recent.happenings.newest(1_000) if one.kind == kind]
    return [happening_fields(one) for one in happened[:_FEED_SHOWN]]
