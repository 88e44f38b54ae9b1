"""caughtup-catch-up-rates: how fast copies restore, as the job on Spark measures it."""

from __future__ import annotations

import logging
from typing import Annotated

import faust
import msgspec

from caughtup.agents.own_records import Slice
from caughtup.models.catch_up_rates import RateWindow, WindowRate, choose_rate
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TaskId
from caughtup.models.state import ClusterState
from caughtup.models.task_positions import CopyKey

log = logging.getLogger(__name__)

SCHEMA = 1
_Positive = Annotated[int, msgspec.Meta(gt=0)]
_NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class RateWindowRecord(msgspec.Struct):
    """A window of a record: offsets a second and how far off they may be, null = unknown."""

    seconds: _Positive
    position_per_second: float | None = None
    spread: _NotNegative | None = None
    samples: int = 0


class RatesRecord(msgspec.Struct):
    """The value on caughtup-catch-up-rates, as far as it is read here.

    ``as_of_ms``: when the windows end. ``trigger_seconds``: how often there may be news.
    """

    schema: int
    as_of_ms: int
    trigger_seconds: _NotNegative
    windows: list[RateWindowRecord]


_decode = msgspec.json.Decoder(RatesRecord).decode
_decode_key = msgspec.json.Decoder(list[str | int]).decode


def catch_up_rates(app: faust.App, channel: faust.ChannelT, state: ClusterState) -> None:
    """Register the catch-up-rates agent: records in batches, the state updated."""

    @app.agent(channel, name="catch_up_rates")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                apply_record(state, record.key, record.value, record.at_ms)


def apply_record(
    state: ClusterState, key: bytes | None, value: bytes | None, at_ms: int | None = None
) -> None:
    """Take one record of caughtup-catch-up-rates; a malformed one is logged and skipped.

    ``at_ms`` is the record's timestamp, which the broker gives it when it is appended; None: it is
    taken to have been written when its windows ended. Records of changelog partitions only show that the stream is up: the service looks at ends itself.
    """
    try:
        copy = _copy(key)
        rate = None
        if value is not None:
            record = _decode(value)
            if record.schema != SCHEMA:
                raise CaughtupError("bad_rates", f"schema {record.schema}, not {SCHEMA}")
            windows = [_window(window) for window in record.windows]
            written_ms = record.as_of_ms if at_ms is None else at_ms
            rate = choose_rate(min(record.as_of_ms, written_ms), windows)
            state.rates.heard(written_ms, round(record.trigger_seconds * 1000))
    except (
        msgspec.MsgspecError,
        CaughtupError,
        ValueError,
        RecursionError,
        OverflowError,
    ) as error:
        log.warning("skipped a record of catch-up rates, key %r: %s", key, error)
        return
    if copy is not None:
        state.rates.apply(*copy, rate)


def _copy(key: bytes | None) -> tuple[str, CopyKey] | None:
    """Give the group and the copy that a record is of; None for a changelog partition's."""
    match _decode_key(key or b""):
        case [str(group), str(process), str(task)]:
            return group, CopyKey(process, TaskId.parse(task))
        case [str(_), int(_)]:
            return None
    raise CaughtupError("bad_key", "neither of a copy nor of a partition")


def _window(window: RateWindowRecord) -> RateWindow:
    position = WindowRate(window.position_per_second, window.spread, window.samples)
    return RateWindow(window.seconds, position, WindowRate(None, None, 0))
