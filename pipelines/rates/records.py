"""Decode the input records of catch-up rates, and encode the rates' records.

Applications report copies' lags on ``caughtup-task-positions``; the service's probe publishes end
offsets on ``caughtup-end-offsets``. Keys and values of all three topics are JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec

from caughtup.models.copies.catch_up_rates import RateWindow
from caughtup.models.errors import CaughtupError
from caughtup.models.records import keys
from caughtup.models.records.catch_up_rates import FORMAT, RatesRecord, RateWindowRecord
from caughtup.models.records.decoding import RefusedError, require_past
from caughtup.models.records.end_offsets import read_end_offsets
from caughtup.models.records.task_positions import read_position
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.rates.state import WindowRates

#: The role of a copy that has nothing to catch up.
_RUNNING = "active"
copy_key, partition_key = keys.encode_copy, keys.encode_partition_array


class PositionReport(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A copy's report: the broker's timestamp (ms), and lags in offsets by changelog.

    ``lags`` is None when the copy has nothing to catch up any more.
    """

    group: str
    process: str
    task: str
    partition: int
    offset: int
    at_ms: int
    lags: dict[str, int] | None


class EndOffsetSample(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A partition's end offset at a time (ms); None if the partition is gone."""

    topic: str
    partition: int
    offset: int
    at_ms: int
    end: int | None


Event = PositionReport | EndOffsetSample


def decode(record: KafkaRecord, positions_topic: str) -> Event | None:
    """Decode a record of one of the two topics; return None for a report without changelogs.

    A report that lacks the lag of a changelog is skipped too: its sum is unknown. Raises
    CaughtupError ``bad_record`` for a malformed record.
    """
    try:
        read = _reported if record.topic == positions_topic else _ended
        return read(record)
    except RefusedError as error:
        where = f"{record.topic}-{record.partition} offset {record.offset}"
        raise CaughtupError("bad_record", f"{where}: {error}") from error


def rates_value(names: dict[str, Any], rates: WindowRates, trigger_seconds: float) -> bytes:
    """Encode the value of a rates record: ``names`` identify the copy or partition.

    ``trigger_seconds``: the time between two records. A partition has only the rate of its end
    offset. Unknown figures are null.
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
    # A future time would make everything else seem outdated.
    require_past(ends.as_of_ms, record.timestamp_ms)
    return EndOffsetSample(*partition, record.offset, ends.as_of_ms, ends.end_offset)
