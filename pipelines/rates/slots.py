"""Compute the rates of one slot: from input records to records of ``caughtup-catch-up-rates``. Pure.

Applications report copies' lags on ``caughtup-task-positions``; the service's probe publishes end
offsets on ``caughtup-end-offsets``. A slot has all copies and changelogs of some partition numbers.
A task's changelogs have the task's partition number, so a copy and its changelogs' end offsets are
always in the same slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from caughtup.models.copies.catch_up_rates import RateWindow
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition
from caughtup.models.records import keys
from caughtup.models.records.catch_up_rates import FORMAT, RatesRecord, RateWindowRecord
from caughtup.models.records.decoding import RefusedError, require_past
from caughtup.models.records.end_offsets import read_end_offsets
from caughtup.models.records.task_positions import read_position
from caughtup.pipelines.events import KafkaRecord
from caughtup.pipelines.rates.state import (
    CopySamples,
    EndSample,
    PartitionSamples,
    WindowRates,
    is_due,
)

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


#: The number of slots for partition numbers. The state in checkpoints depends on it.
SLOTS = 256
#: A copy or partition without events for this time (ms) is forgotten.
FORGOTTEN_MS = 30 * 60_000
#: The end of changelogs' names in Kafka Streams and Faust. Others count once a report names them.
_CHANGELOG = "-changelog"


class OutputRecord(NamedTuple):
    """A record to write; a tombstone when the copy or partition is forgotten."""

    key: bytes
    value: bytes | None


class SlotState(msgspec.Struct):
    """The state of a slot. ``newest_ms``: the newest time of its events."""

    copies: list[CopySamples] = []
    partitions: list[PartitionSamples] = []
    newest_ms: int = 0


def slot_of(event: Event) -> int:
    """Return the slot of an event, from 0 to SLOTS - 1."""
    return event.partition % SLOTS


class Slot:
    """One slot. ``apply`` and ``forget`` change its state and yield the records to write."""

    def __init__(self, state: SlotState, trigger_seconds: float) -> None:
        self._copies = {copy_key(one.group, one.process, one.task): one for one in state.copies}
        self._partitions = {
            TopicPartition(one.topic, one.partition): one for one in state.partitions
        }
        self._newest_ms = state.newest_ms
        self._trigger_seconds = trigger_seconds

    @property
    def state(self) -> SlotState | None:
        """The state to keep; None if it is empty."""
        if not self._copies and not self._partitions:
            return None
        return SlotState(
            [self._copies[key] for key in sorted(self._copies)],
            [self._partitions[key] for key in sorted(self._partitions)],
            self._newest_ms,
        )

    @property
    def oldest_ms(self) -> int:
        """The time (ms) of the oldest of the last events. The slot must not be empty."""
        copies = (one.reports[-1].at_ms for one in self._copies.values())
        ends = (one.ends[-1].at_ms for one in self._partitions.values())
        return min((*copies, *ends))

    def apply(self, events: Iterable[Event], before_ms: int = 0) -> Iterator[OutputRecord]:
        """Apply events, which may be in any order, and yield new records.

        Copies and partitions without events since ``before_ms`` are forgotten, and so are those
        without events for half an hour before this slot's newest event.
        """
        ordered = sorted(
            events, key=lambda event: (isinstance(event, EndOffsetSample), event.offset)
        )
        reported: set[bytes] = set()
        sampled: set[TopicPartition] = set()
        gone: set[bytes] = set()
        for event in ordered:
            self._newest_ms = max(self._newest_ms, event.at_ms)
            if isinstance(event, PositionReport):
                reported.add(self._report(event, gone))
        named = {topic for one in self._copies.values() for topic in one.changelogs}
        for event in ordered:
            if isinstance(event, EndOffsetSample) and (
                event.topic.endswith(_CHANGELOG) or event.topic in named
            ):
                sampled.add(self._sample(event, gone))
        for key in sorted(gone):
            yield OutputRecord(key, None)
        yield from self.forget(max(before_ms, self._newest_ms - FORGOTTEN_MS))
        for partition in sorted(sampled & self._partitions.keys()):
            yield from self._due_partition_rates(partition)
        for key in sorted(reported & self._copies.keys()):
            yield from self._due_copy_rates(key)

    def forget(self, before_ms: int) -> Iterator[OutputRecord]:
        """Forget copies and partitions without events since a time (ms); yield tombstones."""
        for key, copy in sorted(self._copies.items()):
            if copy.reports[-1].at_ms < before_ms:
                del self._copies[key]
                if copy.published is not None:
                    yield OutputRecord(key, None)
        for partition, samples in sorted(self._partitions.items()):
            if samples.ends[-1].at_ms < before_ms:
                del self._partitions[partition]
                if samples.published is not None:
                    yield OutputRecord(partition_key(partition), None)

    def _report(self, event: PositionReport, gone: set[bytes]) -> bytes:
        key = copy_key(event.group, event.process, event.task)
        copy = self._copies.get(key)
        if event.lags is None:
            if copy is not None and self._copies.pop(key).published is not None:
                gone.add(key)
            return key
        if copy is None:
            place = (event.group, event.process, event.task, event.partition)
            copy = self._copies[key] = CopySamples(*place)
        copy.add(event.at_ms, event.lags)
        return key

    def _sample(self, event: EndOffsetSample, gone: set[bytes]) -> TopicPartition:
        partition = TopicPartition(event.topic, event.partition)
        samples = self._partitions.get(partition)
        if event.end is None:
            if samples is not None and self._partitions.pop(partition).published is not None:
                gone.add(partition_key(partition))
            return partition
        if samples is None:
            samples = self._partitions[partition] = PartitionSamples(*partition)
        samples.add(EndSample(event.at_ms, event.end))
        return partition

    def _due_partition_rates(self, partition: TopicPartition) -> Iterator[OutputRecord]:
        samples = self._partitions[partition]
        samples.prune()
        rates = samples.rates()
        if rates is not None and is_due(rates, samples.published):
            samples.published = rates
            names = {"topic": partition.topic, "partition": partition.partition}
            yield OutputRecord(
                partition_key(partition), rates_value(names, rates, self._trigger_seconds)
            )

    def _due_copy_rates(self, key: bytes) -> Iterator[OutputRecord]:
        copy = self._copies[key]
        copy.prune()
        rates = copy.rates(self._partitions)
        if rates is not None and is_due(rates, copy.published):
            copy.published = rates
            names = {"group": copy.group, "process": copy.process, "task": copy.task}
            yield OutputRecord(key, rates_value(names, rates, self._trigger_seconds))
