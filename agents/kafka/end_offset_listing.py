"""List partitions' start, last stable and log end offsets, and the racks of their replicas."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ClusterMetadata

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.clients import REQUEST_SECONDS, result_of
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.cluster_answers import Broker
from caughtup.agents.kafka.protocol.decoding import explain_failure
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
#: How long a broker may take for each answer, and for opening a connection.
ANSWER_SECONDS = 10.0


class EndOffsetListing(NamedTuple):
    """The end offsets that leaders answered with, and every partition that was asked for.

    ``as_of_ms``: when the earliest of the answered requests was sent. ``found``: end offsets by
    partition. ``unanswered``: partitions whose leader did not answer; their known offsets get old.
    ``failed``: by id, the brokers whose request failed since the listing before, and why.
    ``leaderless``: the partitions without a leader, with the brokers of their replicas that are down;
    they have no offsets for now, and they can be neither read nor written. ``appeared`` and
    ``vanished``: topics of the cluster, wanted or not, that are there or gone since the listing before.
    """

    as_of_ms: int
    found: dict[TopicPartition, EndOffsets]
    present: set[TopicPartition]
    unanswered: set[TopicPartition]
    failed: Mapping[int, str] = MappingProxyType({})
    leaderless: Mapping[TopicPartition, tuple[int, ...]] = MappingProxyType({})
    appeared: frozenset[str] = frozenset()
    vanished: frozenset[str] = frozenset()


_Ends = dict[TopicPartition, EndOffsets]


class EndOffsetLister:
    """Lists end offsets repeatedly; a broker that does not answer delays no other's.

    ``client`` lists topics with their leaders, and describes brokers and topics. Use from one event
    loop at a time.
    """

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._known: ClusterMetadata | None = None
        self._topics: frozenset[str] | None = None
        #: By broker: what asks it.
        self._pending: dict[int, asyncio.Task[_Ends]] = {}
        #: Brokers whose last answer was late: nothing waits for them, a late answer is still used.
        self._late: set[int] = set()

    def close(self) -> None:
        """Ask no more: end what still waits for an answer."""
        for pending in self._pending.values():
            pending.cancel()
        self._pending.clear()

    def topic_ids(self, topics: set[str]) -> dict[str, bytes]:
        """Return the ids of topics by name: see the function ``topic_ids``."""
        return topic_ids(self._client, topics)

    def replica_racks(
        self, wants: Callable[[str], bool]
    ) -> dict[TopicPartition, tuple[str | None, ...]]:
        """Return the racks of replicas as of the last listing: see ``replica_racks``."""
        return {} if self._known is None else replica_racks(self._client, self._known, wants)

    async def list_ends(
        self,
        protocol: ClusterProtocol,
        wants: Callable[[str], bool],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> EndOffsetListing:
        """List start, last stable and log end offsets of every topic that ``wants(topic)`` names.

        Leaders are asked through the protocol's connections. Waits up to ``patience_seconds`` for
        brokers that answered the last listing in time. Raises KafkaException when the cluster
        cannot be reached.
        """
        metadata, failure = await asyncio.to_thread(self._metadata, patience_seconds)
        protocol.connections.learn(
            Broker(broker.id, broker.host or "", broker.port)
            for broker in metadata.brokers.values()
        )
        by_leader: dict[int, list[TopicPartition]] = {}
        for name, topic in metadata.topics.items():
            if wants(name):
                for number, partition in topic.partitions.items():
                    by_leader.setdefault(partition.leader, []).append(TopicPartition(name, number))
        present = set(chain.from_iterable(by_leader.values()))
        leaderless = {one: _down(metadata, one) for one in by_leader.pop(-1, [])}
        failed: dict[int, str] = {}
        found = self._answers(failed)  # late answers to earlier requests
        as_of_ms = now_ms()
        for leader, partitions in sorted(by_leader.items()):
            if leader not in self._pending:
                asking = _ask(protocol, leader, partitions, as_of_ms)
                self._pending[leader] = asyncio.create_task(asking)
        awaited = [task for broker, task in self._pending.items() if broker not in self._late]
        if awaited:
            await asyncio.wait(awaited, timeout=patience_seconds)
        found |= self._answers(failed)
        self._late |= self._pending.keys()
        if failure is not None and not found:
            raise failure
        topics = frozenset(metadata.topics)
        before, self._topics = topics if self._topics is None else self._topics, topics
        return EndOffsetListing(
            min((ends.as_of_ms for ends in found.values()), default=as_of_ms),
            {partition: ends for partition, ends in found.items() if partition in present},
            present,
            present - found.keys() - leaderless.keys(),
            failed,
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

    def _answers(self, failed: dict[int, str]) -> _Ends:
        """Collect the answers that are there; note the brokers that failed, and why."""
        found: _Ends = {}
        for broker, pending in sorted(self._pending.items()):
            if not pending.done():
                continue
            del self._pending[broker]
            try:
                ends = pending.result()
            except KafkaError as error:
                failed[broker] = explain_failure(error)
            except asyncio.CancelledError:  # of an earlier event loop
                continue
            else:
                self._late.discard(broker)
                found |= ends
        return found


async def _ask(
    protocol: ClusterProtocol, broker: int, partitions: Sequence[TopicPartition], as_of_ms: int
) -> _Ends:
    """Return the end offsets of those of some partitions that a broker leads. Raises KafkaError.

    In a log, start <= last stable offset <= log end at all times, and none of them decreases; so
    each value returned here held at some time since the first request.
    """
    starts = await protocol.list_starts(broker, partitions)
    stable = await protocol.list_last_stable(broker, partitions)
    ends = await protocol.list_ends(broker, partitions)
    for partition, code in (starts.errors | stable.errors | ends.errors).items():
        log.debug("%s-%d: error %d", *partition, code)
    found: _Ends = {}
    for partition, start in starts.ends.items():
        last_stable, end = stable.ends.get(partition, -1), ends.ends.get(partition, -1)
        if min(start, last_stable, end) >= 0:
            last_stable = max(start, last_stable)
            found[partition] = EndOffsets(start, last_stable, max(last_stable, end), as_of_ms)
    return found


def _down(metadata: ClusterMetadata, partition: TopicPartition) -> tuple[int, ...]:
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
