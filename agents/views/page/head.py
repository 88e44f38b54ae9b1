"""What every view of the page begins with: which cluster, how the service itself is doing."""

from __future__ import annotations

from typing import Any

import msgspec

import caughtup
from caughtup.agents.process.health import Health
from caughtup.agents.views.copies import present
from caughtup.agents.views.spark import checkpoint_problems
from caughtup.models.state.cluster import ClusterState

#: Failures that the page lists, the newest.
FAULTS_SHOWN = 20


def head_fields(state: ClusterState, health: Health, now_ms: int) -> dict[str, Any]:
    """Describe the service and its reader at a moment (ms)."""
    return {
        "now_ms": now_ms,
        "ready": not health.unready(),
        "unready": health.unready(),
        "notices": health.notices(),
        "cluster": state.cluster,
        **present(cluster_name=health.cluster_name),
        "version": caughtup.__version__,
        "reader": present(
            records=sum(state.counts.records.values()),
            lag=health.reader_lag,
            decode_errors=sum(state.counts.errors.values()),
        ),
    }


def left_out(state: ClusterState) -> dict[str, Any]:
    """Describe what was refused, what failed and what could not be written, the newest first."""
    return {
        "refused": [
            {**refusal._asdict(), "times": state.refused.of(topic)}
            for topic, refusal in sorted(state.refused.newest.items())
        ],
        "faults": [fault._asdict() for fault in state.faults.newest()[:FAULTS_SHOWN]],
        "checkpoint_problems": checkpoint_problems(state),
        "set_aside": [aside._asdict() for aside in state.set_aside.newest()[:FAULTS_SHOWN]],
    }


def encoded(view: dict[str, Any]) -> msgspec.Raw:
    """Encode a view now: what can't be costs itself alone."""
    return msgspec.Raw(msgspec.json.encode(view))
