"""Hypothesis strategies for what Connect's workers and their leader send each other."""

from __future__ import annotations

from hypothesis import strategies as st

from caughtup.models.ids import NUMBER_MAX, ConnectorTaskId
from caughtup.models.offsets import LONG_MAX
from caughtup.models.wire.connect_protocol import (
    NOTHING,
    ConnectorsAndTasks,
    WorkerAssignment,
    WorkerState,
)
from tests.models.wire.strategies import names

connector_tasks = st.builds(ConnectorTaskId, names, st.integers(0, NUMBER_MAX))
work = st.builds(
    ConnectorsAndTasks,
    st.lists(names, max_size=4).map(tuple),
    st.lists(connector_tasks, max_size=5).map(tuple),
)
config_offsets = st.integers(-1, LONG_MAX)
versions = st.integers(0, 2)


@st.composite
def worker_assignments(draw: st.DrawFn) -> WorkerAssignment:
    version = draw(versions)
    return WorkerAssignment(
        version=version,
        error=draw(st.integers(-(1 << 15), (1 << 15) - 1)),
        leader=draw(names),
        leader_url=draw(names),
        config_offset=draw(config_offsets),
        assigned=draw(work),
        revoked=draw(work) if version else NOTHING,
        delay_ms=draw(st.integers(0, (1 << 31) - 1)) if version else 0,
    )


@st.composite
def worker_states(draw: st.DrawFn) -> WorkerState:
    version = draw(versions)
    return WorkerState(
        version=version,
        url=draw(names),
        config_offset=draw(config_offsets),
        assignment=draw(st.none() | worker_assignments()) if version else None,
    )
