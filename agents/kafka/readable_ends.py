"""Where the last readable record before a last stable offset ends: markers may follow it.

A transaction's marker takes an offset that no reader is ever given, so a reader of a
transactional topic that has read everything seems one behind for ever. Only reading shows it.
Reading needs READ on the topic; without it, the markers stay counted.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientTopicPartition

from caughtup.agents.kafka.config import rdkafka_config
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

EndOffsetsOf = Mapping[TopicPartition, EndOffsets]

#: A reader that is further behind has real records to read, whatever follows them.
TAIL_OFFSETS = 100
#: Partitions looked at in one go.
_AT_ONCE = 1_000
_FETCH_BYTES = 1 << 16
_TURN_SECONDS = 0.005
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 5.0


class _Search:
    """Looks for the last commit before a partition's last stable offset, as long as it may."""

    def __init__(self, state: ClusterState, partition: TopicPartition, last_stable: int) -> None:
        self.partition = partition
        self.last_stable = last_stable
        self.nearest: int | None = None
        self._commits = state.commits.on(partition)

    def run(self, until: float) -> bool:
        """Go on until a moment of the monotonic clock; tell whether it has come to the end."""
        for committed in self._commits:
            if committed < self.last_stable and (self.nearest is None or committed > self.nearest):
                self.nearest = committed
            if time.monotonic() > until:
                return False
        return True


class ReadableEnds:
    """Remembers each partition's readable end, and looks where a reader seems almost there.

    ``suspects``, then ``read`` (which blocks and touches nothing else, so that it may run in a
    thread), then ``complete``.
    """

    def __init__(self, settings: Settings, state: ClusterState) -> None:
        self._settings = settings
        self._state = state
        #: The last stable offset at which it was looked, and what was found.
        self._known: dict[TopicPartition, tuple[int, int]] = {}
        self._last_stable: dict[TopicPartition, int] = {}
        self._refused: set[str] = set()
        self._next = 0
        self._unfinished: list[_Search] = []

    def suspects(self, found: EndOffsetsOf, *, at_once: bool = False) -> dict[TopicPartition, int]:
        """Name partitions whose tail may be markers only, with the offset to read from.

        A log that grew since the last round is left alone, unless ``at_once``: its readers are on
        their way.
        """
        positions: dict[TopicPartition, int] = {}
        for search in self._searches(self._resting(found, at_once), at_once):
            nearest = search.nearest
            if nearest is None or search.last_stable - nearest > TAIL_OFFSETS:
                continue
            # Nothing before the log start can be read, and there may be nothing behind it.
            positions[search.partition] = max(nearest, found[search.partition].start_offset)
            if len(positions) == _AT_ONCE and not at_once:
                break
        return positions

    def _resting(self, found: EndOffsetsOf, at_once: bool) -> dict[TopicPartition, int]:
        """Return the last stable offset of each partition that rests and wasn't searched yet."""
        before = self._last_stable
        for partition in self._known.keys() - found.keys():
            del self._known[partition]
        self._last_stable = {p: ends.last_stable_offset for p, ends in found.items()}
        return {
            partition: last_stable
            for partition, last_stable in self._last_stable.items()
            if (at_once or before.get(partition) == last_stable)
            and self._at(partition, last_stable) is None
            and partition.topic not in self._refused
        }

    def _searches(self, resting: Mapping[TopicPartition, int], at_once: bool) -> Iterator[_Search]:
        """Return the searches that come to an end in this round.

        Many logs rest, and many groups read them, none of which stands before the end: what takes
        too long is gone on with in the next rounds.
        """
        until = math.inf if at_once else time.monotonic() + _TURN_SECONDS
        unfinished, self._unfinished = self._unfinished, []
        if at_once or self._next >= len(resting):
            self._next = 0
        searches = chain(
            (
                search
                for search in unfinished
                if resting.get(search.partition) == search.last_stable
            ),
            self._new_searches(resting),
        )
        for search in searches:
            if not search.run(until):
                self._unfinished = [search]
                return
            yield search
            if time.monotonic() > until:
                return

    def _new_searches(self, resting: Mapping[TopicPartition, int]) -> Iterator[_Search]:
        for partition, last_stable in islice(resting.items(), self._next, None):
            self._next += 1
            yield _Search(self._state, partition, last_stable)

    def complete(self, found: EndOffsetsOf) -> dict[TopicPartition, EndOffsets]:
        """Return end offsets just listed with their readable ends, as far as they are known."""
        return {
            partition: replace(
                ends, readable_end_offset=self._at(partition, ends.last_stable_offset)
            )
            for partition, ends in found.items()
        }

    def _at(self, partition: TopicPartition, last_stable_offset: int) -> int | None:
        """Return what is known of a partition as long as its last stable offset is this one."""
        looked_at, end = self._known.get(partition, (None, None))
        return end if looked_at == last_stable_offset else None

    def read(self, positions: Mapping[TopicPartition, int], found: EndOffsetsOf) -> None:
        """Read from each position up to the last stable offset, and remember the last record's end.

        Blocks. A partition that doesn't answer in time, or may not be read, stays unknown.
        """
        if not positions:
            return
        ends_at = {p: found[p].last_stable_offset for p in positions}
        for partition, end in self._last_records(positions, ends_at).items():
            self._known[partition] = (ends_at[partition], end)

    def _last_records(
        self, positions: Mapping[TopicPartition, int], ends_at: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        consumer = Consumer(
            rdkafka_config(
                self._settings,
                **{
                    "group.id": f"{self._settings.application_id}-tails",  # never joined
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "fetch.message.max.bytes": _FETCH_BYTES,
                },
            )
        )
        readable, unfinished = dict(positions), set(positions)
        failed: set[TopicPartition] = set()
        try:
            consumer.assign([ClientTopicPartition(*p, at) for p, at in positions.items()])
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while unfinished and time.monotonic() < deadline:
                for message in consumer.consume(_AT_ONCE, timeout=_POLL_SECONDS):
                    partition = TopicPartition(message.topic() or "", message.partition() or 0)
                    error = message.error()
                    if error is None:
                        end = min((message.offset() or 0) + 1, ends_at[partition])
                        readable[partition] = end
                        if end == ends_at[partition]:
                            unfinished.discard(partition)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        unfinished.discard(partition)
                    elif partition in unfinished:  # others concern brokers, or nothing of ours
                        unfinished.discard(partition)
                        failed.add(partition)
                        self._note(partition.topic, error)
        finally:
            consumer.close()
        return {p: end for p, end in readable.items() if p not in unfinished | failed}

    def _note(self, topic: str, error: KafkaError) -> None:
        if error.code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            log.debug("reading the tail of %s: %s", topic, error.str())
        elif topic not in self._refused:
            self._refused.add(topic)
            log.info("no READ on %s: transaction markers at its end count as lag", topic)
