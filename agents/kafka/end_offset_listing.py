"""List partitions' start, last stable and log end offsets, and the racks of their replicas."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType
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
from caughtup.agents.kafka.clients import REQUEST_SECONDS, WEDGED_SECONDS, result_of
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets


def replica_racks(
    admin: AdminClient, metadata: ClusterMetadata, wants: Callable[[str], bool]
) -> dict[TopicPartition, tuple[str | None, ...]]:
    """Return the rack of each replica of every partition of the topics that ``wants`` names.

    Kafka Streams may use racks to assign tasks (KIP-925). A rack is None if the replica's broker has
    none or is down. Blocks. Raises KafkaException when
    no broker answers.
    """
    described = result_of(admin.describe_cluster(request_timeout=REQUEST_SECONDS))
    racks = {node.id: node.rack or None for node in described.nodes}
    return {
        TopicPartition(name, number): tuple(racks.get(broker) for broker in partition.replicas)
        for name, topic in metadata.topics.items()
        if wants(name)
        for number, partition in topic.partitions.items()
    }


log = logging.getLogger(__name__)

#: How long a listing waits for brokers that answered the last one in time.
PATIENCE_SECONDS = 3.0
#: Start, last stable and log end offsets.
_SPECS = (
    (OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED),
    (OffsetSpec.latest(), IsolationLevel.READ_COMMITTED),
    (OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),
)

_Futures = Mapping[ClientTopicPartition, Future[ListOffsetsResultInfo]]


class EndOffsetListing(NamedTuple):
    """The end offsets that leaders answered with, and every partition that was asked for.

    ``as_of_ms``: when the earliest of the answered requests was sent. ``found``: end offsets by
    partition. ``unanswered``: partitions whose leader did not answer; their known offsets get old.
    ``given_up``: ids of brokers for which the client waited much longer than its time-out.
    ``leaderless``: the partitions without a leader, with the brokers of their replicas that are down;
    they have no offsets for now, and they can be neither read nor written. ``appeared`` and ``vanished``: topics of the cluster, wanted or not, that
    are there or gone since the listing before.
    """

    as_of_ms: int
    found: dict[TopicPartition, EndOffsets]
    present: set[TopicPartition]
    unanswered: set[TopicPartition]
    given_up: tuple[int, ...] = ()
    leaderless: Mapping[TopicPartition, tuple[int, ...]] = MappingProxyType({})
    appeared: frozenset[str] = frozenset()
    vanished: frozenset[str] = frozenset()


class _PendingRequests(NamedTuple):
    """The pending requests to one broker, and when they were sent (ms, and monotonic seconds)."""

    as_of_ms: int
    sent_at: float
    futures: tuple[_Futures, ...]

    def is_answered(self, until: float) -> bool:
        """Wait for all answers until a monotonic time; return whether they came."""
        try:
            for futures in self.futures:
                for future in futures.values():
                    future.exception(max(0.0, until - time.monotonic()))
        except TimeoutError:
            return False
        return True

    def ends(self) -> dict[TopicPartition, EndOffsets]:
        """Return the end offsets of every partition that has all three.

        The three requests may be answered in any order. In a log, start <= last stable offset <=
        log end at all times, and none of them decreases; so each value returned here held at some
        time since the request.
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
    """Lists end offsets repeatedly; a broker that does not answer delays no other's.

    ``client`` makes the admin client, and a new one when a client no longer ends its requests.
    """

    def __init__(self, client: Callable[[], AdminClient]) -> None:
        self._make_client = client
        self._client = client()
        self._known: ClusterMetadata | None = None
        self._topics: frozenset[str] | None = None
        self._pending: dict[int, _PendingRequests] = {}
        #: Brokers whose last answer was late: nothing waits for them, a late answer is still used.
        self._late: set[int] = set()

    def topic_ids(self, topics: set[str]) -> dict[str, bytes]:
        """Return the ids of topics by name: see the function ``topic_ids``."""
        return topic_ids(self._client, topics)

    def replica_racks(
        self, wants: Callable[[str], bool]
    ) -> dict[TopicPartition, tuple[str | None, ...]]:
        """Return the racks of replicas as of the last listing: see ``replica_racks``."""
        return {} if self._known is None else replica_racks(self._client, self._known, wants)

    def list_ends(
        self, wants: Callable[[str], bool], patience_seconds: float = PATIENCE_SECONDS
    ) -> EndOffsetListing:
        """List start, last stable and log end offsets of every topic that ``wants(topic)`` names.

        Waits up to ``patience_seconds`` for brokers that answered the last listing in time. Raises
        KafkaException when the cluster cannot be reached.
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
        leaderless = {
            TopicPartition(one.topic, one.partition): _down(metadata, one)
            for one in by_leader.pop(-1, [])
        }
        found = self._answers(-1.0)  # late answers to earlier requests
        as_of_ms = now_ms()
        for leader, partitions in sorted(by_leader.items()):
            if leader not in self._pending:
                self._pending[leader] = self._ask(partitions, as_of_ms)
        found |= self._answers(time.monotonic() + patience_seconds)
        given_up = self._give_up()
        if failure is not None and not found:
            raise failure
        topics = frozenset(metadata.topics)
        before, self._topics = topics if self._topics is None else self._topics, topics
        return EndOffsetListing(
            min((ends.as_of_ms for ends in found.values()), default=as_of_ms),
            {partition: ends for partition, ends in found.items() if partition in present},
            present,
            present - found.keys() - leaderless.keys(),
            given_up,
            leaderless,
            topics - before,
            before - topics,
        )

    def _metadata(self, patience_seconds: float) -> tuple[ClusterMetadata, KafkaException | None]:
        """Return the topics; if no broker answers, those known before with the error.

        The client may ask a broker that hangs, repeatedly, until it has dropped that connection.
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

    def _ask(self, partitions: Sequence[ClientTopicPartition], as_of_ms: int) -> _PendingRequests:
        futures = tuple(
            self._client.list_offsets(
                dict.fromkeys(partitions, spec),
                isolation_level=isolation,
                request_timeout=REQUEST_SECONDS,
            )
            for spec, isolation in _SPECS
        )
        return _PendingRequests(as_of_ms, time.monotonic(), cast(tuple[_Futures, ...], futures))

    def _answers(self, until: float) -> dict[TopicPartition, EndOffsets]:
        """Collect answers; wait until a monotonic time for brokers that were not late before."""
        found: dict[TopicPartition, EndOffsets] = {}
        for broker, pending in sorted(self._pending.items()):
            if not pending.is_answered(-1.0 if broker in self._late else until):
                if until > 0:
                    self._late.add(broker)
                continue
            del self._pending[broker]
            ends = pending.ends()
            if ends:
                self._late.discard(broker)
            found |= ends
        return found

    def _give_up(self) -> tuple[int, ...]:
        """Replace a client that no longer ends its requests; return the brokers it waits for."""
        now = time.monotonic()
        wedged = [
            b for b, pending in self._pending.items() if now > pending.sent_at + WEDGED_SECONDS
        ]
        if not wedged:
            return ()
        self._pending.clear()
        self._late.clear()
        former = [self._client]
        self._client = self._make_client()
        # Destroying such a client may never return either.
        threading.Thread(target=former.clear, name="wedged-client", daemon=True).start()
        return tuple(sorted(wedged))


def _down(metadata: ClusterMetadata, partition: ClientTopicPartition) -> tuple[int, ...]:
    """Return the brokers of a partition's replicas that no broker lists any more, sorted."""
    replicas = metadata.topics[partition.topic].partitions[partition.partition].replicas
    return tuple(sorted(set(replicas) - metadata.brokers.keys()))


def topic_ids(admin: AdminClient, topics: set[str]) -> dict[str, bytes]:
    """Return the ids of topics (16 bytes each) by name; deleted and forbidden topics are left out.

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
            topic_id = result_of(future).topic_id
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
        # librdkafka returns -1001 and no error when it lost the leader during the request.
        if offset >= 0:
            found[TopicPartition(partition.topic, partition.partition)] = offset
    return found
