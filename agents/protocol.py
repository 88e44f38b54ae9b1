"""What no Python client offers in public: reassignments, and each replica's own log end.

Everything that leans on aiokafka's internals is in this file; tests/agents/test_protocol.py
fails loudly when an upgrade moves them. Formats: Kafka protocol, keys 46 and 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
)
from aiokafka.protocol.api import Request
from aiokafka.protocol.offset import OffsetRequest_v1

from caughtup.models.ids import TopicPartition

#: Kafka's "debugging" replica id: any replica answers with its own log end, leader or not.
DEBUGGING_REPLICA = -2
LATEST = -1
_TIMEOUT_MS = 10_000


class ListedReassignment(NamedTuple):
    """A partition in movement as the controller lists it: broker ids."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class _ReplicaLogEnds(Request[OffsetRequest_v1]):
    """ListOffsets v1 with the debugging replica id."""

    API_KEY = 2

    def __init__(self, topics: list[tuple[str, list[tuple[int, int]]]]) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[OffsetRequest_v1]) -> OffsetRequest_v1:
        return request_struct_class(DEBUGGING_REPLICA, self._topics)


class ClusterProtocol:
    """A connection for the calls of this module. Use as an async context manager."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._admin = AIOKafkaAdminClient(**config, request_timeout_ms=_TIMEOUT_MS)

    async def __aenter__(self) -> Self:
        await self._admin.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._admin.close()

    async def list_reassignments(self) -> dict[TopicPartition, ListedReassignment]:
        """List every partition in movement. Needs DESCRIBE on the cluster. Raises KafkaError."""
        request = ListPartitionReassignmentsRequest(_TIMEOUT_MS, None, {})
        response = await self._admin._send_to_controller(request)
        _raise_for(response.error_code, response.error_message)
        return {
            TopicPartition(topic, partition): ListedReassignment(
                tuple(replicas), tuple(adding), tuple(removing)
            )
            for topic, partitions, _ in response.topics
            for partition, replicas, adding, removing, _ in partitions
        }

    async def alter_reassignments(self, targets: Mapping[TopicPartition, list[int] | None]) -> None:
        """Start moving partitions to these brokers; None cancels. Raises KafkaError."""
        topics = [(p.topic, [(p.partition, replicas, {})], {}) for p, replicas in targets.items()]
        request = AlterPartitionReassignmentsRequest(_TIMEOUT_MS, topics, {})
        response = await self._admin._send_to_controller(request)
        _raise_for(response.error_code, response.error_message)
        for _, partitions, _ in response.responses:
            for _, code, message, _ in partitions:
                _raise_for(code, message)

    async def replica_log_ends(
        self, broker: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Ask one broker for its own log end of these partitions.

        A partition that the broker doesn't hold is absent. Raises KafkaError if it can't be
        reached. Needs DESCRIBE on the topics.
        """
        by_topic: dict[str, list[tuple[int, int]]] = {}
        for partition in sorted(partitions):
            by_topic.setdefault(partition.topic, []).append((partition.partition, LATEST))
        request = _ReplicaLogEnds(list(by_topic.items()))
        response = await self._admin._send_request_to_node(broker, request)
        return {
            TopicPartition(topic, partition): offset
            for topic, answers in response.topics
            for partition, code, _, offset in answers
            if code == 0
        }


def _raise_for(code: int, message: str | None) -> None:
    if code:
        kind: type[KafkaError] = for_code(code)
        raise kind(message or kind.description)
