"""caughtup-application-states: what an application's leader saw and did at a rebalance."""

from __future__ import annotations

import logging
from typing import Any

import faust
import msgspec

from caughtup.agents.own_records import Slice
from caughtup.agents.recommend import Wakeup
from caughtup.models.application_state import read_application_state
from caughtup.models.errors import ScenarioError
from caughtup.models.state import ClusterState

log = logging.getLogger(__name__)


def application_states(
    app: faust.App, channel: faust.ChannelT, state: ClusterState, wakeups: faust.ChannelT
) -> None:
    """Register the application-states agent: records in, decisions that wait for them woken."""

    @app.agent(channel, name="application_states")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                apply_record(state, record.key, record.value, record.at_ms)
            await wakeups.put(Wakeup.GROUPS)


def apply_record(state: ClusterState, key: bytes | None, value: bytes | None, at_ms: int) -> None:
    """Take one record of caughtup-application-states; a malformed one is logged and skipped.

    ``at_ms`` is the record's timestamp, which the broker gives it when it is appended.
    """
    if key is None or value is None:
        return
    try:
        record = msgspec.json.decode(value, type=dict[str, Any])
        state.applications.apply_state(key.decode(), read_application_state(record, at_ms))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ScenarioError) as error:
        log.warning("skipped a state of an application, key %r: %s", key, error)
