"""caughtup-task-positions: how far copies are between rebalances, as their applications say."""

from __future__ import annotations

import faust

from caughtup.agents.topics.decoding import taking, times_of
from caughtup.agents.topics.records import Slice
from caughtup.agents.wakeups import Wakeup
from caughtup.models.records.decoding import TOO_MANY, RefusedError, require_past
from caughtup.models.records.task_positions import read_position
from caughtup.models.records.topics import TASK_POSITIONS
from caughtup.models.state.cluster import ClusterState


def task_positions(
    app: faust.App, channel: faust.ChannelT, state: ClusterState, wakeups: faust.ChannelT
) -> None:
    """Register the task-positions agent: reports in batches, the state updated."""

    @app.agent(channel, name="task_positions")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                apply_record(state, record.key, record.value, *times_of(record))
            await wakeups.put(Wakeup.POSITIONS)


def apply_record(
    state: ClusterState,
    key: bytes | None,
    value: bytes | None,
    at_ms: int,
    clock_ms: int | None = None,
) -> None:
    """Take one record of caughtup-task-positions, unless it is refused.

    ``at_ms`` is the record's timestamp, which the broker gives it when it is appended, and
    ``clock_ms`` what to hold it against.
    """
    with taking(state, TASK_POSITIONS, key, clock_ms) as clock:
        require_past(at_ms, clock)
        group, copy, record = read_position(key, value)
        position = None if record is None else record.to_position(at_ms)
        if not state.positions.apply(group, copy, position):
            raise RefusedError(TOO_MANY, "positions of too many copies are kept")
