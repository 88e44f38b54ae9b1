"""Find the offset after the last readable record: only transaction markers follow it.

A marker takes an offset and no consumer gets it, so a group that has read everything on a
transactional topic seems one offset behind for ever. Only reading the tail shows that. It needs
READ on the topic; without it, the markers count as lag.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterator, Mapping
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

#: A group that is further behind has records to read in any case.
TAIL_OFFSETS = 100
#: The number of partitions whose tails are read in one round.
_AT_ONCE = 1_000
_FETCH_BYTES = 1 << 16
_TURN_SECONDS = 0.005
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 5.0


class _CommitSearch:
    """Searches, in steps, for the greatest committed offset below a last stable offset."""

    def __init__(self, state: ClusterState, partition: TopicPartition, last_stable: int) -> None:
        self.partition = partition
        self.last_stable = last_stable
        self.nearest: int | None = None
        self._commits = state.commits.on(partition)

    def run(self, until: float) -> bool:
        """Continue until a monotonic time; return whether the search is finished."""
        for committed in self._commits:
            if committed < self.last_stable and (self.nearest is None or committed > self.nearest):
                self.nearest = committed
            if time.monotonic() > until:
                return False
        return True


class ReadableEnds:
    """Knows partitions' readable ends, and reads the tails of those with a group near the end.

    ``completed`` is all of it: ``suspects``, then ``read`` in a thread, for which it changes nothing
    that the others use, then ``complete``.
    """

    def __init__(self, settings: Settings, state: ClusterState) -> None:
        self._settings = settings
        self._state = state
        #: By partition: the last stable offset at which its tail was read, and the readable end.
        self._known: dict[TopicPartition, tuple[int, int]] = {}
        self._last_stable: dict[TopicPartition, int] = {}
        self._refused: set[str] = set()
        self._next = 0
        self._unfinished: list[_CommitSearch] = []

    async def completed(
        self, found: EndOffsetsOf, *, at_once: bool = False
    ) -> dict[TopicPartition, EndOffsets]:
        """Return end offsets with their readable ends, after reading the tails of ``suspects``."""
        suspects = self.suspects(found, at_once=at_once)
        if suspects:  # handing nothing to a thread would cost more than looking for them
            await asyncio.to_thread(self.read, suspects, found)
        return self.complete(found)

    def suspects(self, found: EndOffsetsOf, *, at_once: bool = False) -> dict[TopicPartition, int]:
        """Return the partitions whose tail may be markers only, with the offset to read from.

        Unless ``at_once``, a log that grew since the last round is left out: its groups still read.
        """
        positions: dict[TopicPartition, int] = {}
        for search in self._searches(self._resting(found, at_once), at_once):
            nearest = search.nearest
            if nearest is None or search.last_stable - nearest > TAIL_OFFSETS:
                continue
            # Nothing before the log start can be read, and the log may be empty.
            positions[search.partition] = max(nearest, found[search.partition].start_offset)
            if len(positions) == _AT_ONCE and not at_once:
                break
        return positions

    def _resting(self, found: EndOffsetsOf, at_once: bool) -> dict[TopicPartition, int]:
        """Return the last stable offset of each partition that did not grow and is still unknown."""
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

    def _searches(
        self, resting: Mapping[TopicPartition, int], at_once: bool
    ) -> Iterator[_CommitSearch]:
        """Yield the searches that finish in this round.

        There may be many logs at rest with many groups, none of which is near the end: after 5 ms
        the rest is left for the next rounds.
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

    def _new_searches(self, resting: Mapping[TopicPartition, int]) -> Iterator[_CommitSearch]:
        for partition, last_stable in islice(resting.items(), self._next, None):
            self._next += 1
            yield _CommitSearch(self._state, partition, last_stable)

    def complete(self, found: EndOffsetsOf) -> dict[TopicPartition, EndOffsets]:
        """Return the given end offsets with their readable ends, None where unknown."""
        return {
            partition: ends
            if (end := self._at(partition, ends.last_stable_offset)) == ends.readable_end_offset
            else ends.with_readable_end(end)
            for partition, ends in found.items()
        }

    def _at(self, partition: TopicPartition, last_stable_offset: int) -> int | None:
        """Return the readable end if it was found at this last stable offset, else None."""
        looked_at, end = self._known.get(partition, (None, None))
        return end if looked_at == last_stable_offset else None

    def read(self, positions: Mapping[TopicPartition, int], found: EndOffsetsOf) -> None:
        """Read from each position to the last stable offset, and remember the readable end.

        Blocks for up to 5 s. A partition that cannot be read in time stays unknown.
        """
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
                    elif partition in unfinished:  # other errors are of brokers, not partitions
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
