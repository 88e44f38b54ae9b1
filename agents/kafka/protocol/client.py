"""Calls that no Python client offers in public: reassignments, and replicas' log ends and sizes.

They use our own connections (brokers.py) and requests (requests.py), so that the calls of a round
run side by side and a large cluster's metadata is never listed whole. Large answers are decoded in
a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from aiokafka.errors import KafkaError, TransactionalIdAuthorizationFailed

from caughtup.agents.kafka.protocol import answers, cluster_answers, requests, transactions
from caughtup.agents.kafka.protocol.answers import (
    LogDirectories,
    OngoingReassignments,
    ResourceConfigs,
)
from caughtup.agents.kafka.protocol.brokers import MOST_PAUSE_SECONDS, BrokerConnections, Purpose
from caughtup.agents.kafka.protocol.cluster_answers import (
    ApiVersions,
    Broker,
    DescribedPartitions,
    zookeeper_decides,
)
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import choose_version, decode, decode_now
from caughtup.agents.kafka.protocol.partitions import describe_partitions, list_topic_names
from caughtup.agents.kafka.protocol.requests import Call, Key, ResourceType
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition

TIMEOUT_SECONDS = 10.0


class PartitionReassignment(NamedTuple):
    """A partition's ongoing reassignment as the controller lists it: broker ids."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ReplicaLogEnds(NamedTuple):
    """The log ends of a broker's replicas, and the error codes of the other partitions."""

    ends: dict[TopicPartition, int]
    errors: dict[TopicPartition, int]


class Quorum(NamedTuple):
    """The id and the epoch of the active controller; None if there is none."""

    leader: int | None
    epoch: int | None


class ClusterProtocol:
    """The calls of this module. Use as an async context manager.

    ``config``: aiokafka's properties. ``timeout_seconds``: for opening a connection, and for each
    answer. ``most_pause_seconds``: how long a broker that did not answer is left alone at most. Every
    call raises KafkaError when it fails, also if the brokers are too old for it.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        timeout_seconds: float = TIMEOUT_SECONDS,
        *,
        most_pause_seconds: float = MOST_PAUSE_SECONDS,
    ) -> None:
        self.connections = BrokerConnections(
            config, timeout_seconds, most_pause_seconds=most_pause_seconds
        )
        self._timeout_ms = int(timeout_seconds * 1000)
        self._controller: int | None = None

    async def __aenter__(self) -> Self:
        await self.brokers()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.connections.close()

    async def brokers(self) -> tuple[Broker, ...]:
        """List the registered brokers; since 4.0 with the fenced ones."""
        try:
            call, data = await self.connections.ask_any(_cluster_call)
        except KafkaError:  # all brokers may have new addresses
            connection = await self.connections.bootstrap()
            try:
                call = _cluster_call(connection.offered)
                data = await connection.ask(call)
            finally:
                connection.close()
        if call.key is Key.METADATA:
            found, _ = decode_now(cluster_answers.decode_metadata, data)
        else:
            found = decode_now(lambda raw: cluster_answers.decode_cluster(raw, call.version), data)
        raise_for(found.error_code)
        self._controller = found.controller
        self.connections.learn(found.brokers)
        return found.brokers

    async def offered(self, broker: int) -> ApiVersions:
        """Return which requests and features a broker offers."""
        return (await self.connections.connection(broker)).offered

    async def version(self, broker: int, key: Key, wanted: Sequence[int]) -> int:
        """Return the first of the wanted versions of a request that a broker takes."""
        return choose_version(await self.offered(broker), key, wanted)

    async def list_reassignments(self) -> dict[TopicPartition, PartitionReassignment]:
        """List ongoing reassignments, sorted. Needs DESCRIBE on the cluster. Since 2.4."""
        data = await self._ask_controller(requests.list_reassignments_call(self._timeout_ms))
        listed, found = await decode(_decode_listed, data)
        raise_for(listed.error_code, listed.message)
        return found

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None]
    ) -> None:
        """Reassign partitions to these brokers; None cancels. Needs ALTER on the cluster."""
        call = requests.alter_reassignments_call(self._timeout_ms, targets)
        data = await self._ask_controller(call)
        for code, message in await decode(answers.decode_alter_reassignments, data):
            raise_for(code, message)

    async def describe_quorum(self) -> Quorum:
        """Return the active controller. Needs DESCRIBE on the cluster, and KRaft."""
        data = await self._ask_controller(requests.describe_quorum_call())
        code, leader, epoch = decode_now(cluster_answers.decode_quorum, data)
        raise_for(code)
        return Quorum(leader, epoch)

    async def replica_log_ends(
        self, broker: int, partitions: Iterable[TopicPartition]
    ) -> ReplicaLogEnds:
        """Return the log ends of a broker's own replicas. Needs DESCRIBE on the topics."""
        return await self._list(broker, partitions, replica=requests.DEBUGGING_REPLICA)

    async def list_offsets(
        self, broker: int, partitions: Iterable[TopicPartition], at: int
    ) -> dict[TopicPartition, int]:
        """Return the start (EARLIEST) or end (LATEST) offsets of partitions that a broker leads.

        Needs DESCRIBE on the topics.
        """
        offsets, errors = await self._list(broker, partitions, at=at)
        for code in errors.values():
            raise_for(code)
        return offsets

    async def list_ends(self, broker: int, partitions: Iterable[TopicPartition]) -> ReplicaLogEnds:
        """Return the high watermarks of partitions that a broker leads, and the others' error codes.

        Needs DESCRIBE on the topics.
        """
        return await self._list(broker, partitions)

    async def list_last_stable(
        self, broker: int, partitions: Iterable[TopicPartition]
    ) -> ReplicaLogEnds:
        """Return the last stable offsets of partitions that a broker leads, and error codes.

        Needs DESCRIBE on the topics.
        """
        return await self._list(broker, partitions, isolation=requests.READ_COMMITTED)

    async def list_starts(
        self, broker: int, partitions: Iterable[TopicPartition]
    ) -> ReplicaLogEnds:
        """Return the log starts of partitions that a broker leads, and error codes.

        Needs DESCRIBE on the topics.
        """
        return await self._list(broker, partitions, at=requests.EARLIEST)

    async def _list(
        self,
        broker: int,
        partitions: Iterable[TopicPartition],
        *,
        replica: int = requests.CONSUMER_REPLICA,
        at: int = requests.LATEST,
        isolation: int = requests.READ_UNCOMMITTED,
    ) -> ReplicaLogEnds:
        version = await self.version(broker, Key.LIST_OFFSETS, requests.LIST_OFFSETS_VERSIONS)
        call = requests.list_offsets_call(
            partitions, replica=replica, at=at, isolation=isolation, version=version
        )
        data = await self.connections.ask(broker, call)
        return ReplicaLogEnds(
            *await decode(lambda raw: answers.decode_list_offsets(raw, version), data)
        )

    async def log_directories(
        self, broker: int, partitions: Iterable[TopicPartition]
    ) -> LogDirectories:
        """Return a broker's log directories, and the sizes of its logs of these partitions.

        Needs DESCRIBE on the cluster. Since 2.6.
        """
        version = await self.version(broker, Key.DESCRIBE_LOG_DIRS, (4, 3, 2))
        call = requests.describe_log_dirs_call(partitions, version)
        data = await self.connections.ask(broker, call)
        found = await decode(lambda raw: answers.decode_log_dirs(raw, version), data)
        raise_for(found.error_code)
        return found

    async def broker_configs(self, broker: int, names: Sequence[str]) -> dict[str, str]:
        """Return those of a broker's named configs that are not left to their defaults.

        Needs DESCRIBE_CONFIGS on the cluster.
        """
        call = requests.describe_configs_call(ResourceType.BROKER, [str(broker)], names)
        found = await decode(answers.decode_configs, await self.connections.ask(broker, call))
        if len(found) != 1:
            raise KafkaError(
                f"an answer with the configs of {len(found)} resources, not of 1 broker"
            )
        raise_for(found[0].error_code)
        return found[0].configs

    async def topic_configs(
        self, topics: Iterable[str], names: Sequence[str]
    ) -> list[ResourceConfigs]:
        """Return topics' configs, each with an error code. Needs DESCRIBE_CONFIGS on the topics."""
        call = requests.describe_configs_call(ResourceType.TOPIC, topics, names)
        _, data = await self.connections.ask_any(call)
        return await decode(answers.decode_configs, data)

    async def describe_partitions(
        self, partitions: Collection[TopicPartition]
    ) -> DescribedPartitions:
        """Return partitions' replicas, ISR and leader. Needs DESCRIBE on the topics.

        A partition that is not in the result, and whose topic has no error, does not exist.
        """
        return await describe_partitions(self.connections, partitions)

    async def topic_names(self) -> list[str]:
        """List all topics with DESCRIBE. From 4.1 on needs DESCRIBE_CONFIGS on the cluster."""
        return await list_topic_names(self.connections)

    async def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has. Raises KafkaError."""
        await self.brokers()
        _, data = await self.connections.ask_any(requests.metadata_call([topic]))
        _, described = await decode(cluster_answers.decode_metadata, data)
        raise_for(described.errors.get(topic, 0))
        return len(described.partitions)

    async def may_write_transactions(self, transactional_id: str) -> bool:
        """Return whether we have WRITE on a transactional id, which need not exist. Since 2.4."""
        call = transactions.end_no_transaction_call(transactional_id)
        _, data = await self.connections.ask_any(call)
        refused: int = TransactionalIdAuthorizationFailed.errno
        return decode_now(transactions.decode_ended, data) != refused

    async def _any_offered(self) -> ApiVersions:
        return await self.connections.any_offered()

    async def _ask_controller(self, call: Call) -> bytes:
        """Ask the controller: with KRaft through any broker, which forwards, else directly."""
        if zookeeper_decides(await self._any_offered()) and self._controller is not None:
            await self.brokers()
            return await self.connections.ask(self._controller, call, purpose=Purpose.FORWARDED)

        def make(offered: ApiVersions) -> Call:
            choose_version(offered, call.key, (call.version,))
            return call

        _, data = await self.connections.ask_any(make, purpose=Purpose.FORWARDED)
        return data


def _cluster_call(offered: ApiVersions) -> Call:
    """Return the newest request for the list of brokers that a broker offers."""
    if Key.DESCRIBE_CLUSTER in offered.requests:
        version = choose_version(offered, Key.DESCRIBE_CLUSTER, (2, 1, 0))
        return requests.describe_cluster_call(version)
    return requests.metadata_call(())


def _decode_listed(
    data: bytes,
) -> tuple[OngoingReassignments, dict[TopicPartition, PartitionReassignment]]:
    """Decode and sort in one function, to run in a thread for thousands of partitions."""
    listed = answers.decode_reassignments(data)
    ongoing = sorted(listed.reassignments.items())
    return listed, {partition: PartitionReassignment(*brokers) for partition, brokers in ongoing}


def reassigner(bootstrap_servers: str) -> Callable[[TopicPartition, list[int] | None], None]:
    """Return a function that reassigns a partition to the given brokers; None cancels.

    It is for the demo and the benchmarks: the service never reassigns.

    The function blocks, and raises KafkaError.
    """

    def reassign(partition: TopicPartition, replicas: list[int] | None) -> None:
        async def ask() -> None:
            async with ClusterProtocol({"bootstrap_servers": bootstrap_servers}) as protocol:
                await protocol.alter_reassignments({partition: replicas})

        asyncio.run(ask())

    return reassign


async def quorum_leader(bootstrap_servers: str) -> int:
    """Return the id of the active controller. Raises KafkaError, or CaughtupError without one."""
    async with ClusterProtocol({"bootstrap_servers": bootstrap_servers}) as protocol:
        leader = (await protocol.describe_quorum()).leader
    if leader is None:
        raise CaughtupError("no_controller", "there is no active controller")
    return leader
