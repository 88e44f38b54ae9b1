"""A partition assignor that follows recommendations, for applications on Faust.

Faust keeps, restores and routes to its tables as with its own assignor. Warm-ups of a
recommendation are standbys to Faust.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata
from faust.assignor.partition_assignor import PartitionAssignor
from faust.exceptions import ImproperlyConfigured
from faust.stores import STORES
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth, server_list
from faust.types import AppT
from faust.types.enums import ProcessingGuarantee

from caughtup.followers.aiokafka import rejoin
from caughtup.followers.python.faust.worker import (
    CountedTopology,
    FaustCopies,
    join_user_data,
    read_worker,
    split_user_data,
)
from caughtup.followers.python.group_snapshot import FollowerSubscription
from caughtup.followers.python.kafka.log_ends import Connection
from caughtup.followers.python.member import FollowingMember
from caughtup.followers.python.settings import FollowerSettings
from caughtup.models.assignment.configs import read_configs
from caughtup.models.groups.generation import FOLLOWERS_PROTOCOL
from caughtup.models.ids import ProcessId
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.wire.user_data import encode_assignment_info

# Registers the store for tables with store="caughtup-memory://".
STORES.aliases["caughtup-memory"] = "caughtup.followers.python.faust.memory:MemoryStore"
_VERSION = 0
_EXACTLY_ONCE: object = ProcessingGuarantee.EXACTLY_ONCE
_STOP_SECONDS = 5.0


class FollowingAssignor(PartitionAssignor):
    """Faust's assignor with the follower's rules; ``following`` makes one with other configs.

    Faust calls it in its consumer's thread. Nothing here waits for Kafka.
    """

    config: ClassVar[Mapping[str, object]] = {}
    settings: ClassVar[FollowerSettings] = FollowerSettings()

    def __init__(self, app: AppT, replicas: int = 0) -> None:
        """Keep ``replicas`` standbys of a table. Raises ImproperlyConfigured for exactly_once."""
        if app.conf.processing_guarantee is _EXACTLY_ONCE:
            # With exactly_once Faust restores up to its fetch position, which a rebalance resets.
            raise ImproperlyConfigured("a follower can't have processing_guarantee='exactly_once'")
        super().__init__(app, replicas)
        self._topology = CountedTopology()
        self._member = FollowingMember(
            app.conf.id,
            self._topology,
            FaustCopies(app, self._topology),
            _connection(app),
            {"num.standby.replicas": replicas, **self.config},
            self.settings,
            app.conf.broker_client_id,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting: asyncio.Task[None] | None = None
        self._due: asyncio.TimerHandle | None = None
        app.on_before_shutdown.connect(self._stop)

    @property
    def name(self) -> str:
        """Return the group's protocol."""
        return FOLLOWERS_PROTOCOL

    @property
    def version(self) -> int:
        """Return the consumer protocol's version: one without owned partitions."""
        return _VERSION

    @property
    def process(self) -> ProcessId:
        """The worker's process id in recommendations."""
        return self._member.process

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the member's metadata for a join."""
        self._begin()
        fausts = ClientMetadata(
            assignment=ClientAssignment(actives={}, standbys={}),
            url=str(self._url),
            changelog_distribution={},
        )
        user_data = join_user_data(self._member.user_data(), fausts.dumps())
        return ConsumerProtocolMemberMetadata(_VERSION, sorted(topics), user_data)

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Apply an assignment: aiokafka has assigned the sources, but fetched nothing.

        Raises DecodeError if the leader is not a Faust worker.
        """
        self._forget_due()
        followers, fausts = split_user_data(assignment.user_data)
        told = ClientMetadata.loads(fausts)
        both = sorted(told.assignment.kafka_protocol_assignment(self.app.tables))
        super().on_assignment(
            ConsumerProtocolMemberAssignment(_VERSION, both, self._compress(fausts))
        )
        consumer = self._consumer
        assign_too(consumer, ((topic, one) for topic, partitions in both for one in partitions))
        self._topology.count(told.topic_groups)
        next_ms = self._member.on_assignment(followers, lambda task: None)
        if next_ms is not None:
            seconds = max(0.0, next_ms / 1000 - time.time())
            self._due = asyncio.get_running_loop().call_later(seconds, rejoin, consumer)

    def _perform_assignment(
        self,
        cluster: ClusterMetadata,
        member_metadata: Mapping[str, ConsumerProtocolMemberMetadata],
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Decide a rebalance as leader, without topics to which not all members subscribe."""
        subscribed, urls = {}, {}
        for member, metadata in member_metadata.items():
            followers, urls[member] = read_worker(metadata.user_data)
            subscribed[member] = FollowerSubscription(metadata.subscription, followers)
        known = set.intersection(*(set(one.topics) for one in subscribed.values()))
        counts = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in sorted(known)}
        self._topology.count(counts)
        given = self._member.assign(counts, subscribed)
        self._member_urls = urls
        assignments = {member: self._with_tables(one) for member, one in given.items()}
        self._add_global_tables(assignments, counts)
        fausts = self._protocol_assignments(
            assignments,
            self._get_changelog_distribution(assignments),
            self._get_external_topic_distribution(assignments),
            counts,
        )
        return {
            member: _write(one, self._decompress(fausts[member].user_data))
            for member, one in given.items()
        }

    def _with_tables(self, given: MemberAssignment) -> ClientAssignment:
        """Add the changelogs of a member's tables: of actives, and of standbys."""
        tables_of = self._topology.tables_of
        active = {*given.partitions}.union(*(tables_of(task).values() for task in given.active))
        standby = {one for task in given.standby for one in tables_of(task).values()}
        return ClientAssignment(actives=_by_topic(active), standbys=_by_topic(standby))

    def _add_global_tables(
        self, assignments: dict[str, ClientAssignment], counts: Mapping[str, int]
    ) -> None:
        """Assign all partitions of global tables to every member."""
        everywhere = [table for table in self.app.tables.values() if table.is_global]
        if all(counts.get(table.changelog_topic_name) for table in everywhere):
            self._global_table_standby_assignments(assignments, counts)

    def _begin(self) -> None:
        """Start the background tasks on this thread's event loop, unless they run already."""
        if self._loop is None:
            self._learn_tables()
            self._loop = asyncio.get_running_loop()
            self._starting = self._loop.create_task(self._member.start())

    def _learn_tables(self) -> None:
        tables = {one.changelog_topic_name: one for one in self.app.tables.values()}
        self._topology.keep(
            {topic: one.name for topic, one in tables.items() if not one.is_global},
            [topic for topic, one in tables.items() if one.is_global],
        )

    async def _stop(self, *given: object, **more: object) -> None:
        """Stop the member when the application stops, while the consumer's thread still runs."""
        if self._loop is not None and not self._loop.is_closed():
            ended = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(ended), _STOP_SECONDS)

    async def _end(self) -> None:
        self._forget_due()
        if self._starting is not None:
            self._starting.cancel()
        await self._member.stop()

    def _forget_due(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    @property
    def _consumer(self) -> AIOKafkaConsumer:
        consumer: Any = self.app.consumer
        return consumer._thread._ensure_consumer()


def following(
    config: Mapping[str, object] | None = None,
    settings: FollowerSettings = FollowingAssignor.settings,
) -> type[FollowingAssignor]:
    """Return an assignor for the setting ``PartitionAssignor``, with other configs than Kafka's.

    ``config`` and ``settings`` as for ``caughtup.followers.aiokafka.Follower``. Raises
    ScenarioError for an invalid config.
    """
    read_configs(config or {})
    given = {"config": dict(config or {}), "settings": settings}
    return type("FollowingAssignor", (FollowingAssignor,), given)


def assign_too(consumer: AIOKafkaConsumer, partitions: Iterable[tuple[str, int]]) -> None:
    """Assign partitions to a consumer in addition to the group's assignment.

    The group assigns only source partitions. The changelogs of its actives and standbys each member
    adds itself. tests/followers/test_faust.py fails when these internals change.
    """
    consumer._subscription.assign_from_subscribed({KafkaPartition(*one) for one in partitions})


def _connection(app: AppT) -> Connection:
    """Return the connection properties of Faust's consumer."""
    transport: Any = app.transport
    servers = server_list(transport.url, transport.default_port)
    auth = credentials_to_aiokafka_auth(app.conf.broker_credentials, app.conf.ssl_context)
    return {"bootstrap_servers": servers, **auth}


def _write(given: MemberAssignment, fausts: bytes) -> ConsumerProtocolMemberAssignment:
    info = encode_assignment_info(given.active, given.standby, given.next_rebalance_ms)
    sources = list(_by_topic(given.partitions).items())
    return ConsumerProtocolMemberAssignment(_VERSION, sources, join_user_data(info, fausts))


def _by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return by_topic
