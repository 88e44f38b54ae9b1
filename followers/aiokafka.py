"""A partition assignor that follows recommendations, for applications on aiokafka.

aiokafka takes an assignor as a class and calls its class methods, so each follower makes a class of
its own. User data and assignments have the format of Kafka Streams. aiokafka does not support the
cooperative protocol: all members revoke their partitions before each rebalance. Their tables stay.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

from caughtup.followers.python.group_snapshot import FollowerSubscription
from caughtup.followers.python.kafka.log_ends import Connection
from caughtup.followers.python.member import FollowingMember
from caughtup.followers.python.settings import FollowerSettings
from caughtup.followers.python.topology import Copies, Topology
from caughtup.models.groups.generation import FOLLOWERS_PROTOCOL
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.wire.user_data import encode_assignment_info

log = logging.getLogger("caughtup.followers")

_VERSION = 0
_DEFAULTS = FollowerSettings()


class Follower:
    """One consumer's follower.

    ``assignor`` has to be the only entry of the consumer's ``partition_assignment_strategy``.
    ``connection``: the consumer's connection properties. ``config``: Kafka's assignment configs by
    name. Call ``start`` with the consumer before that is started, and ``stop`` after it was stopped.
    """

    def __init__(
        self,
        group: str,
        topology: Topology,
        copies: Copies,
        connection: Connection,
        *,
        config: Mapping[str, object] | None = None,
        settings: FollowerSettings = _DEFAULTS,
        client_id: str = "",
    ) -> None:
        """Make a follower. Raises ScenarioError or ValueError for an invalid config."""
        self._member = FollowingMember(
            group, topology, copies, connection, config or {}, settings, client_id
        )
        self._topology = topology
        self._consumer: AIOKafkaConsumer | None = None
        self._paused: set[TaskId] = set()
        self._due: asyncio.TimerHandle | None = None
        self.assignor: type[AbstractPartitionAssignor] = _assignor(self)

    @property
    def process(self) -> ProcessId:
        """The process id in recommendations."""
        return self._member.process

    async def start(self, consumer: AIOKafkaConsumer) -> None:
        """Start to read recommendations, and to publish positions."""
        self._consumer = consumer
        await self._member.start()

    async def stop(self) -> None:
        """Stop reading and reporting, and withdraw the positions."""
        if self._due is not None:
            self._due.cancel()
        await self._member.stop()

    def subscription(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the member's metadata for a join."""
        return ConsumerProtocolMemberMetadata(_VERSION, sorted(topics), self._member.user_data())

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Decide a rebalance as the group's leader."""
        counts = {
            topic: len(cluster.partitions_for_topic(topic) or ()) for topic in self._topology.topics
        }
        subscribed = {
            member: FollowerSubscription(metadata.subscription, metadata.user_data)
            for member, metadata in members.items()
        }
        assigned = self._member.assign(counts, subscribed)
        return {member: _write(given) for member, given in assigned.items()}

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Apply an assignment: aiokafka has assigned the partitions, but fetched nothing."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        given = {TopicPartition(*one) for one in assignment.partitions()}
        self._paused = {
            task
            for task in map(self._topology.task_reading, sorted(given))
            if task is not None and self._topology.stateful(task)
        }
        consumer = self._consumer
        if consumer is None:
            log.error("the follower was not started with its consumer; nothing is restored")
            return
        consumer.pause(*self._sources(self._paused))
        next_ms = self._member.on_assignment(assignment.user_data, self._resume)
        if next_ms is not None:
            seconds = max(0.0, next_ms / 1000 - time.time())
            loop = asyncio.get_running_loop()
            self._due = loop.call_later(seconds, rejoin, consumer)

    def _resume(self, task: TaskId) -> None:
        if task in self._paused and self._consumer is not None:
            self._paused.remove(task)
            self._consumer.resume(*self._sources({task}))

    def _sources(self, tasks: Iterable[TaskId]) -> Sequence[KafkaPartition]:
        """Return the source partitions of these tasks that are assigned to the consumer now."""
        assert self._consumer is not None
        wanted = set(tasks)
        return sorted(
            one
            for one in self._consumer.assignment()
            if self._topology.task_reading(TopicPartition(*one)) in wanted
        )


def rejoin(consumer: AIOKafkaConsumer) -> None:
    """Make a consumer's group rebalance, like ``enforceRebalance`` in Java.

    The public way, to subscribe again, revokes the partitions before their offsets can be
    committed. tests/followers/test_aiokafka.py fails when these internals change.
    """
    coordinator = consumer._coordinator
    if coordinator is not None:
        coordinator.request_rejoin()


def _write(given: MemberAssignment) -> ConsumerProtocolMemberAssignment:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in given.partitions:
        by_topic.setdefault(topic, []).append(partition)
    user_data = encode_assignment_info(given.active, given.standby, given.next_rebalance_ms)
    return ConsumerProtocolMemberAssignment(_VERSION, list(by_topic.items()), user_data)


def _assignor(follower: Follower) -> type[AbstractPartitionAssignor]:
    """Return an assignor class for aiokafka that calls one follower."""

    class AiokafkaAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
        name = FOLLOWERS_PROTOCOL

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
            return follower.subscription(topics)

        @classmethod
        def assign(
            cls,
            cluster: ClusterMetadata,
            members: Mapping[str, ConsumerProtocolMemberMetadata],
        ) -> dict[str, ConsumerProtocolMemberAssignment]:
            return follower.assign(cluster, members)

        @classmethod
        def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
            follower.on_assignment(assignment)

    return AiokafkaAssignor
