"""caughtup-application-states: what an application's leader saw and did at a rebalance."""

from __future__ import annotations

import asyncio

import faust

from caughtup.agents.topics.decoding import taking, times_of
from caughtup.agents.topics.records import Slice
from caughtup.agents.wakeups import Wakeup
from caughtup.models.decisions.inputs.application_state import ApplicationState
from caughtup.models.records.application_states import read_state
from caughtup.models.records.decoding import TOO_MANY, RefusedError, require_past
from caughtup.models.records.topics import APPLICATION_STATES
from caughtup.models.state.cluster import ClusterState


def application_states(
    app: faust.App, channel: faust.ChannelT, state: ClusterState, wakeups: faust.ChannelT
) -> None:
    """Register the application-states agent: records in, decisions that wait for them woken."""

    @app.agent(channel, name="application_states")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                at_ms, clock_ms = times_of(record)
                with taking(state, APPLICATION_STATES, record.key, clock_ms) as clock:
                    require_past(at_ms, clock)
                    # What a large application tells takes long to read.
                    told = await asyncio.to_thread(read_state, record.key, record.value, at_ms)
                    _take(state, *told)
            await wakeups.put(Wakeup.GROUPS)


def apply_record(
    state: ClusterState,
    key: bytes | None,
    value: bytes | None,
    at_ms: int,
    clock_ms: int | None = None,
) -> None:
    """Take one record of caughtup-application-states, unless it is refused.

    ``at_ms`` is the record's timestamp, which the broker gives it when it is appended, and
    ``clock_ms`` what to hold it against.
    """
    with taking(state, APPLICATION_STATES, key, clock_ms) as clock:
        require_past(at_ms, clock)
        _take(state, *read_state(key, value, at_ms))


def _take(state: ClusterState, group: str, told: ApplicationState | None) -> None:
    if told is not None and not state.applications.apply_state(group, told):
        raise RefusedError(TOO_MANY, "states of too many applications are kept")
