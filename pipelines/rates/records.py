"""The records that catch-up rates are made of, and the records that they are.

An application reports a copy's lags on ``caughtup-task-positions``; the service's probe publishes
ends on ``caughtup-end-offsets``. Keys and values of all three are JSON.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from caughtup.models.copies.catch_up_rates import RateWindow
from caughtup.models.errors import CaughtupError
from caughtup.models.records import keys
from caughtup.models.records.catch_up_rates import FORMAT, RatesRecord, RateWindowRecord
from caughtup.models.records.decoding import RefusedError, require_past
from caughtup.models.records.end_offsets import read_end_offsets
from caughtup.models.records.task_positions import read_position
from caughtup.pipelines.rates.state import Rates

#: A role in which a copy has nothing to catch up.
_RUNNING = "active"
copy_key, partition_key = keys.encode_copy, keys.encode_partition_array


class KafkaRecord(NamedTuple):
    """A record as Kafka has it; the timestamp in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class PositionReport(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A copy's report: when the broker got it (ms), and lags in offsets by changelog.

    ``lags`` None: it has nothing to catch up any more.
    """

    group: str
    process: str
    task: str
    partition: int
    offset: int
    at_ms: int
    lags: dict[str, int] | None


class EndOffsetSample(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Where a partition ended at a moment (ms); None: it is gone."""

    topic: str
    partition: int
    offset: int
    at_ms: int
    end: int | None


Event = PositionReport | EndOffsetSample


def decode(record: KafkaRecord, positions_topic: str) -> Event | None:
    """Decode a record of one of the two topics; None for a report that tells of no changelog.

    A report that lacks the lag of a changelog counts as none: its sum isn't known. Raises
    CaughtupError ``bad_record`` for anything that isn't of their format.
    """
    try:
        read = _reported if record.topic == positions_topic else _ended
        return read(record)
    except RefusedError as error:
        where = f"{record.topic}-{record.partition} offset {record.offset}"
        raise CaughtupError("bad_record", f"{where}: {error}") from error


def rates_value(names: dict[str, Any], rates: Rates, trigger_seconds: float) -> bytes:
    """Return the value of a record: ``names`` of what, its windows, as of when (ms).

    ``trigger_seconds``: how often there may be news. A partition has only the growth of its
    end. What isn't known is null.
    """
    windows = [_window(window, positions="task" in names) for window in rates.windows]
    record = RatesRecord(FORMAT.schema, rates.as_of_ms, trigger_seconds, windows, **names)
    return FORMAT.encode(record)


def _window(window: RateWindow, *, positions: bool) -> RateWindowRecord:
    record = RateWindowRecord(window.seconds)
    if positions:
        record.position_per_second, record.spread, record.samples = window.position
    record.end_offset_per_second, record.end_spread, record.end_samples = window.end
    return record


def _reported(record: KafkaRecord) -> PositionReport | None:
    group, copy, position = read_position(record.key, record.value)
    task = copy.task
    place = (
        group,
        copy.process,
        str(task),
        task.partition,
        record.offset,
        record.timestamp_ms,
    )
    if position is None or position.role == _RUNNING:
        return PositionReport(*place, None)
    lags = {topic: lag for topic, lag in position.lags.items() if lag is not None}
    if not lags or len(lags) < len(position.lags):
        return None
    return PositionReport(*place, lags)


def _ended(record: KafkaRecord) -> EndOffsetSample:
    partition, ends = read_end_offsets(record.key, record.value)
    if ends is None:
        return EndOffsetSample(*partition, record.offset, record.timestamp_ms, None)
    # It would make everything else seem long gone.
    require_past(ends.as_of_ms, record.timestamp_ms)
    return EndOffsetSample(*partition, record.offset, ends.as_of_ms, ends.end_offset)
