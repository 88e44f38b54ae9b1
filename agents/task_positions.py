"""caughtup-task-positions: how far copies are between rebalances, as their applications say."""

from __future__ import annotations

import logging

import faust
import msgspec

from caughtup.agents.own_records import Slice
from caughtup.agents.recommend import Wakeup
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TaskId
from caughtup.models.state import ClusterState
from caughtup.models.task_positions import ROLES, CopyKey, TaskPosition

log = logging.getLogger(__name__)


class PositionRecord(msgspec.Struct, omit_defaults=True):
    """The value on caughtup-task-positions: lags in offsets, by changelog topic and in all."""

    schema: int
    role: str | None = None
    lag: int | None = None
    lags: dict[str, int | None] = {}


_decode = msgspec.json.Decoder(PositionRecord).decode
_decode_key = msgspec.json.Decoder(tuple[str, str, str]).decode


def task_positions(
    app: faust.App, channel: faust.ChannelT, state: ClusterState, wakeups: faust.ChannelT
) -> None:
    """Register the task-positions agent: reports in batches, the state updated."""

    @app.agent(channel, name="task_positions")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                apply_record(state, record.key, record.value, record.at_ms)
            await wakeups.put(Wakeup.POSITIONS)


def apply_record(state: ClusterState, key: bytes | None, value: bytes | None, at_ms: int) -> None:
    """Take one record of caughtup-task-positions; a malformed one is logged and skipped.

    ``at_ms`` is the record's timestamp, which the broker gives it when it is appended.
    """
    try:
        group, process, name = _decode_key(key or b"")
        copy = CopyKey(process, TaskId.parse(name))
        if value is None:
            state.positions.apply(group, copy, None)
            return
        record = _decode(value)
        lags = {topic: lag for topic, lag in record.lags.items() if lag is not None}
        if min(record.lag or 0, *lags.values(), 0) < 0 or record.role not in (*ROLES, None):
            raise CaughtupError("bad_position", "neither a lag nor a role as they should be")
    except (msgspec.MsgspecError, CaughtupError, ValueError, RecursionError) as error:
        log.warning("skipped a record of task positions, key %r: %s", key, error)
        return
    state.positions.apply(group, copy, TaskPosition(record.role, record.lag, lags, at_ms))
