"""Start, last stable and log end offsets of partitions, asked of their leaders side by side."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple, cast

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ListOffsetsResultInfo,
    OffsetSpec,
)

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.answered import REQUEST_SECONDS, WEDGED_SECONDS, answered
from caughtup.agents.kafka.replica_racks import replica_racks
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets

log = logging.getLogger(__name__)

#: So long does a listing wait for brokers that answered the last time.
_PATIENCE_SECONDS = 3.0
#: Start, last stable and log end offsets.
_SPECS = (
    (OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED),
    (OffsetSpec.latest(), IsolationLevel.READ_COMMITTED),
    (OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),
)

_Futures = Mapping[ClientTopicPartition, Future[ListOffsetsResultInfo]]


class EndOffsetListing(NamedTuple):
    """The end offsets that leaders answered with, and every partition that was asked for.

    ``as_of_ms``: when the first that answered was asked; answers may be as old. ``unanswered``:
    partitions that have a leader which didn't answer; what was known of them grows old. One without
    a leader has no offsets for now, and nobody writes to it. ``given_up``: brokers for whose
    answers the client waited far longer than it was to. ``leaderless``: partitions without a leader.
    """

    as_of_ms: int
    found: dict[TopicPartition, EndOffsets]
    present: set[TopicPartition]
    unanswered: set[TopicPartition]
    given_up: tuple[int, ...] = ()
    leaderless: int = 0


class _Question(NamedTuple):
    """What one broker was asked, when (ms, and by the monotonic clock), and its answers to be."""

    as_of_ms: int
    asked: float
    futures: tuple[_Futures, ...]

    def is_answered(self, until: float) -> bool:
        """Wait until then (monotonic) for its answers; a broker's come together."""
        try:
            for futures in self.futures:
                for future in futures.values():
                    future.exception(max(0.0, until - time.monotonic()))
        except TimeoutError:
            return False
        return True

    def ends(self) -> dict[TopicPartition, EndOffsets]:
        """Return the end offsets of every partition that has all three.

        They may have been answered in any order. As none of them ever falls below the one before
        it in a log, each was true at some moment since it was asked for.
        """
        starts, stable, ends = (_offsets(futures) for futures in self.futures)
        found = {}
        for partition in starts.keys() & stable.keys() & ends.keys():
            start = starts[partition]
            last_stable = max(start, stable[partition])
            end = max(last_stable, ends[partition])
            found[partition] = EndOffsets(start, last_stable, end, self.as_of_ms)
        return found


class EndOffsetLister:
    """Lists end offsets again and again; a broker that is silent keeps no other's waiting.

    ``client`` makes the client that asks, and another one once that has wedged.
    """

    def __init__(self, client: Callable[[], AdminClient]) -> None:
        self._make_client = client
        self._client = client()
        self._known: ClusterMetadata | None = None
        self._questions: dict[int, _Question] = {}
        #: Brokers whose last answer was late: it is taken when it is there.
        self._late: set[int] = set()

    def topic_ids(self, topics: set[str]) -> dict[str, bytes]:
        """Ask for the ids of topics: ``topic_ids``."""
        return topic_ids(self._client, topics)

    def replica_racks(
        self, wants: Callable[[str], bool]
    ) -> dict[TopicPartition, tuple[str | None, ...]]:
        """Ask for the racks of replicas, as of the last listing: ``replica_racks``."""
        return {} if self._known is None else replica_racks(self._client, self._known, wants)

    def list_ends(
        self, wants: Callable[[str], bool], patience_seconds: float = _PATIENCE_SECONDS
    ) -> EndOffsetListing:
        """List start, last stable and log end offsets of every topic that ``wants(topic)`` names.

        Blocks. Raises KafkaException when the cluster can't be reached.
        """
        metadata, failure = self._metadata(patience_seconds)
        by_leader: dict[int, list[ClientTopicPartition]] = {}
        for name, topic in metadata.topics.items():
            if wants(name):
                for number, partition in topic.partitions.items():
                    by_leader.setdefault(partition.leader, []).append(
                        ClientTopicPartition(name, number)
                    )
        present = {TopicPartition(p.topic, p.partition) for led in by_leader.values() for p in led}
        leaderless = by_leader.pop(-1, [])
        found = self._answers(-1.0)  # what came late
        as_of_ms = now_ms()
        for leader, partitions in sorted(by_leader.items()):
            if leader not in self._questions:
                self._questions[leader] = self._ask(partitions, as_of_ms)
        found |= self._answers(time.monotonic() + patience_seconds)
        given_up = self._give_up()
        if failure is not None and not found:
            raise failure
        return EndOffsetListing(
            min((ends.as_of_ms for ends in found.values()), default=as_of_ms),
            {partition: ends for partition, ends in found.items() if partition in present},
            present,
            present - found.keys() - {TopicPartition(p.topic, p.partition) for p in leaderless},
            given_up,
            len(leaderless),
        )

    def _metadata(self, patience_seconds: float) -> tuple[ClusterMetadata, KafkaException | None]:
        """Ask for the topics; return those known before, and why, where nobody answers.

        The client may ask the one broker that hangs, and again, until it has dropped the connection.
        """
        known = self._known
        try:
            timeout = REQUEST_SECONDS if known is None else patience_seconds
            self._known = self._client.list_topics(timeout=timeout)
        except KafkaException as error:
            if known is None:
                raise
            return known, error
        return self._known, None

    def _ask(self, partitions: Sequence[ClientTopicPartition], as_of_ms: int) -> _Question:
        futures = tuple(
            self._client.list_offsets(
                dict.fromkeys(partitions, spec),
                isolation_level=isolation,
                request_timeout=REQUEST_SECONDS,
            )
            for spec, isolation in _SPECS
        )
        return _Question(as_of_ms, time.monotonic(), cast(tuple[_Futures, ...], futures))

    def _answers(self, until: float) -> dict[TopicPartition, EndOffsets]:
        """Collect what was answered; until then (monotonic) wait for brokers that weren't late."""
        found: dict[TopicPartition, EndOffsets] = {}
        for broker, question in sorted(self._questions.items()):
            if not question.is_answered(-1.0 if broker in self._late else until):
                if until > 0:
                    self._late.add(broker)
                continue
            del self._questions[broker]
            ends = question.ends()
            if ends:
                self._late.discard(broker)
            found |= ends
        return found

    def _give_up(self) -> tuple[int, ...]:
        """Replace the client if it has wedged; return the brokers it still waits for."""
        now = time.monotonic()
        wedged = [
            b for b, question in self._questions.items() if now > question.asked + WEDGED_SECONDS
        ]
        if not wedged:
            return ()
        self._questions.clear()
        self._late.clear()
        former = [self._client]
        self._client = self._make_client()
        # Destroying it may take for ever, too.
        threading.Thread(target=former.clear, name="wedged-client", daemon=True).start()
        return tuple(sorted(wedged))


def list_end_offsets(admin: AdminClient, wants: Callable[[str], bool]) -> EndOffsetListing:
    """List end offsets once, waiting as long as the client may take: ``EndOffsetLister.list_ends``."""
    return EndOffsetLister(lambda: admin).list_ends(wants, WEDGED_SECONDS)


def topic_ids(admin: AdminClient, topics: set[str]) -> dict[str, bytes]:
    """Ask for the ids of topics, 16 bytes each; a topic that is gone or hidden is left out.

    Blocks.
    """
    if not topics:
        return {}
    futures = admin.describe_topics(
        TopicCollection(sorted(topics)), request_timeout=REQUEST_SECONDS
    )
    found = {}
    for topic, future in futures.items():
        try:
            topic_id = answered(future).topic_id
        except KafkaException as error:
            log.debug("topic %s: %s", topic, error.args[0].str())
            continue
        halves = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
        found[topic] = b"".join(half.to_bytes(8, signed=True) for half in halves)
    return found


def _offsets(futures: _Futures) -> dict[TopicPartition, int]:
    found = {}
    for partition, future in futures.items():
        try:
            offset = future.result().offset
        except KafkaException as error:
            log.debug("%s-%d: %s", partition.topic, partition.partition, error.args[0].str())
            continue
        # librdkafka has -1001 and no error for a leader that was lost under the request.
        if offset >= 0:
            found[TopicPartition(partition.topic, partition.partition)] = offset
    return found
