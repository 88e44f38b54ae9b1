"""Rates of everything in one slot: events in, records for ``caughtup-catch-up-rates`` out. Pure.

A slot has all copies and changelogs of some partition numbers: a task's changelogs have its own
partition number, so that a copy and the ends that it is to reach are always in the same slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from caughtup.models.ids import TopicPartition
from caughtup.pipelines.rates.records import (
    EndOffsetSample,
    Event,
    PositionReport,
    copy_key,
    partition_key,
    rates_value,
)
from caughtup.pipelines.rates.state import CopySamples, EndSample, PartitionSamples, is_due

#: Partition numbers are spread over this many slots. The number is in every checkpoint's state.
SLOTS = 256
#: A copy or a partition without news for so long is forgotten, in ms.
FORGOTTEN_MS = 30 * 60_000
#: How Kafka Streams and Faust end the names of their changelogs. Others count once a report
#: names them.
_CHANGELOG = "-changelog"


class Output(NamedTuple):
    """A record to write; without a value it says that the copy or partition is forgotten."""

    key: bytes
    value: bytes | None


class SlotState(msgspec.Struct):
    """The state of a slot. ``newest_ms``: the latest moment that any event was of."""

    copies: list[CopySamples] = []
    partitions: list[PartitionSamples] = []
    newest_ms: int = 0


def slot_of(event: Event) -> int:
    """Return the slot of an event, from 0 to SLOTS - 1."""
    return event.partition % SLOTS


class Slot:
    """The state of one slot, to be worked on. ``apply`` and ``forget`` return what is to be written."""

    def __init__(self, state: SlotState, trigger_seconds: float) -> None:
        self._copies = {copy_key(one.group, one.process, one.task): one for one in state.copies}
        self._partitions = {
            TopicPartition(one.topic, one.partition): one for one in state.partitions
        }
        self._newest_ms = state.newest_ms
        self._trigger_seconds = trigger_seconds

    @property
    def state(self) -> SlotState | None:
        """The state to keep, None for nothing."""
        if not self._copies and not self._partitions:
            return None
        return SlotState(
            [self._copies[key] for key in sorted(self._copies)],
            [self._partitions[key] for key in sorted(self._partitions)],
            self._newest_ms,
        )

    @property
    def oldest_ms(self) -> int:
        """The moment (ms) of whose news are the oldest; there is something in the slot."""
        copies = (one.reports[-1].at_ms for one in self._copies.values())
        ends = (one.ends[-1].at_ms for one in self._partitions.values())
        return min((*copies, *ends))

    def apply(self, events: Iterable[Event], before_ms: int = 0) -> Iterator[Output]:
        """Apply events in any order, those of one topic by their offsets; return what is news.

        ``before_ms``: what has no news since then is forgotten; so is what has none for half an
        hour by this slot's own events.
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
            yield Output(key, None)
        yield from self.forget(max(before_ms, self._newest_ms - FORGOTTEN_MS))
        for partition in sorted(sampled & self._partitions.keys()):
            yield from self._due_partition_rates(partition)
        for key in sorted(reported & self._copies.keys()):
            yield from self._due_copy_rates(key)

    def forget(self, before_ms: int) -> Iterator[Output]:
        """Forget what has no news since a moment (ms); what was published of it is withdrawn."""
        for key, copy in sorted(self._copies.items()):
            if copy.reports[-1].at_ms < before_ms:
                del self._copies[key]
                if copy.published is not None:
                    yield Output(key, None)
        for partition, samples in sorted(self._partitions.items()):
            if samples.ends[-1].at_ms < before_ms:
                del self._partitions[partition]
                if samples.published is not None:
                    yield Output(partition_key(partition), None)

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

    def _due_partition_rates(self, partition: TopicPartition) -> Iterator[Output]:
        samples = self._partitions[partition]
        samples.prune()
        rates = samples.rates()
        if rates is not None and is_due(rates, samples.published):
            samples.published = rates
            names = {"topic": partition.topic, "partition": partition.partition}
            yield Output(partition_key(partition), rates_value(names, rates, self._trigger_seconds))

    def _due_copy_rates(self, key: bytes) -> Iterator[Output]:
        copy = self._copies[key]
        copy.prune()
        rates = copy.rates(self._partitions)
        if rates is not None and is_due(rates, copy.published):
            copy.published = rates
            names = {"group": copy.group, "process": copy.process, "task": copy.task}
            yield Output(key, rates_value(names, rates, self._trigger_seconds))
