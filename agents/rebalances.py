"""The probe of rebalances: end offsets of an application's changelogs, listed while it rebalances.

A leader decides by end offsets that it publishes nowhere. See ``models/histories/rebalance_ends``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from aiokafka.errors import KafkaError
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.election.agent import until_active
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.led_ends import LedEnds
from caughtup.agents.kafka.partition_leaders import LogPartition
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.described.listed_groups import groups_in_states
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.histories.rebalance_ends import RebalanceEnds
from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState
from caughtup.models.tasks.changelogs import CHANGELOG
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

log = logging.getLogger(__name__)

PROBE = "rebalances"
#: The states of a group, by Kafka's names, between a member's change and the leader's decision.
_JOINING, _SYNCING = "PreparingRebalance", "CompletingRebalance"
#: The pause between two looks while no application rebalances: the join phase usually takes as long
#: as a heartbeat interval.
_REST_SECONDS = 0.2
#: How long after its rebalance an application is still listed, since another often follows, and how
#: long the listings are kept for its decision.
_AFTER_SECONDS, _KEPT_SECONDS = 1.0, 30.0
#: The most partitions of one listing; applications that began to rebalance later are left out.
_MOST_PARTITIONS = 10_000
_TIMEOUT_SECONDS = 5.0
#: The version of ListGroups that has states (KIP-518), and how often leaders are asked for.
_SINCE_VERSION, _LEARN_SECONDS = 4, 1.0
_RETRY_SECONDS = 5.0
#: After this many generations of which no rebalance was seen, a missing permission is assumed.
_UNSEEN_GENERATIONS = 10


class RebalancesProbe(Service):
    """Asks which applications rebalance, and lists the end offsets of their changelogs meanwhile.

    ``partitions`` are those of ``__consumer_offsets`` with their leaders, which coordinate groups.
    ``wake`` is called after a listing that a generation may wait for.
    Without applications it asks nothing.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        health: Health,
        state: ClusterState,
        partitions: Mapping[int, LogPartition],
        wake: Callable[[], Awaitable[object]],
    ) -> None:
        super().__init__()
        self._config = aiokafka_config(settings)
        self._interval = settings.rebalance_interval
        self._health = health
        self._state = state
        self._partitions = partitions
        self._wake = wake
        self._ends = LedEnds(self._broker_failed)
        #: When each application was last seen to rebalance (monotonic seconds).
        self._seen: dict[str, float] = {}
        self._learned_at = 0.0
        self._is_denied = self._has_seen = self._has_failed = False
        #: The generations that were decided before the first look.
        self._at_start: int | None = None

    @Service.task
    async def _run(self) -> None:
        await until_active(self, self._health)
        while not self.should_stop:
            with self._state.faults.isolated(PROBE, "a round", now_ms(), self._failed):
                try:
                    async with ClusterProtocol(self._config, _TIMEOUT_SECONDS) as protocol:
                        await self._observe(protocol)
                except (KafkaError, OSError, TimeoutError) as error:
                    if self._failed(error):
                        log.warning("looking for rebalances: %s", error)
            await self.sleep(_RETRY_SECONDS)

    def _failed(self, _: Exception) -> bool:
        return self._health.failed(PROBE)

    def _broker_failed(self, broker: int, error: KafkaError) -> None:
        """Count the failure of one broker, which costs only the groups that need it."""
        self._has_failed = True
        if self._failed(error):
            log.warning("looking for rebalances: broker %d: %s", broker, error)

    async def _observe(self, protocol: ClusterProtocol) -> None:
        """Look again and again, and list before each look while an application rebalances."""
        while not self.should_stop:
            began, sent = time.monotonic(), protocol.connections.requests
            self._has_failed = False
            if listed := self._listed():
                await self._list(protocol, listed)
                if not set(listed).isdisjoint(self._state.applications.awaited()):
                    await self._wake()
            await self._look(protocol)
            self._health.rebalance_requests += protocol.connections.requests - sent
            self._forget()
            if not self._has_failed:
                self._health.succeeded(PROBE, now_ms())
            # It takes half of the time at most, however many applications rebalance.
            pause = max(self._interval, time.monotonic() - began)
            if self._has_failed:
                pause = max(pause, _LEARN_SECONDS)
            await self.sleep(pause if self._listed() else max(pause, _REST_SECONDS))

    def _listed(self) -> list[str]:
        """Return the applications that rebalance or did so lately, those of longest ago first."""
        since = time.monotonic() - _AFTER_SECONDS
        return [group for group, seen in self._seen.items() if seen >= since]

    async def _look(self, protocol: ClusterProtocol) -> None:
        """Ask the coordinators of applications which groups rebalance."""
        coordinators = {self._coordinator(group) for group in self._state.applications}
        found: dict[str, str] = {}
        for broker in sorted(one for one in coordinators if one is not None):
            try:
                offered = await protocol.offered(broker)
                if offered.requests.get(Key.LIST_GROUPS, (0, 0))[1] >= _SINCE_VERSION:
                    states = (_JOINING, _SYNCING)
                    found |= await groups_in_states(protocol.connections, broker, states)
            except KafkaError as error:
                self._broker_failed(broker, error)
        now, applications = time.monotonic(), self._state.applications
        listed = set(self._listed())
        counts = self._state.ends.partition_counts() if found else {}
        for group, state in sorted(found.items()):
            if group not in applications:
                continue
            ends = applications.rebalance_ends.get(group)
            if group not in listed or ends is None:
                changelogs = self._changelogs(group, counts)
                ends = applications.rebalance_ends[group] = RebalanceEnds(changelogs)
            if state == _JOINING:
                ends.is_joining()
            self._seen[group] = now
        self._has_seen = self._has_seen or bool(found)
        self._warn_if_denied()

    def _changelogs(self, group: str, counts: Mapping[str, int]) -> list[TopicPartition]:
        given = self._state.applications.parameters(group).changelogs or {}
        told = {topic for topics in given.values() for topic in topics}
        prefix = f"{group}-"
        own = (
            topic
            for topic in counts
            if topic in told or (topic.startswith(prefix) and topic.endswith(CHANGELOG))
        )
        return [
            TopicPartition(topic, number)
            for topic in sorted(own)
            for number in range(counts[topic])
        ]

    async def _list(self, protocol: ClusterProtocol, groups: Iterable[str]) -> None:
        """List the end offsets of applications' changelogs, and of their logs of commits."""
        applications = self._state.applications
        known: dict[str, RebalanceEnds] = {}
        wanted: set[TopicPartition] = set()
        for group in groups:
            own = applications.rebalance_ends.get(group)
            if own is not None and len(wanted) + len(own.partitions) < _MOST_PARTITIONS:
                known[group] = own
                wanted.update(own.partitions)
        await self._learn_leaders(protocol, wanted)
        places = {self._place(group) for group in known}
        led = {place: self._partitions[place.partition].leader for place in places}
        others = {place: leader for place, leader in led.items() if leader is not None}
        found = await self._ends.list(protocol, wanted, others)
        for group, own in known.items():
            own.add(found, found.get(self._place(group)))

    async def _learn_leaders(
        self, protocol: ClusterProtocol, partitions: set[TopicPartition]
    ) -> None:
        unknown = self._ends.unknown(partitions)
        if unknown and time.monotonic() >= self._learned_at + _LEARN_SECONDS:
            self._learned_at = time.monotonic()
            await self._ends.learn(protocol, unknown)

    def _place(self, group: str) -> TopicPartition:
        """Return the partition of ``__consumer_offsets`` of a group."""
        number = coordinator_partition(group, len(self._partitions))
        return TopicPartition(CONSUMER_OFFSETS, number)

    def _coordinator(self, group: str) -> int | None:
        return self._partitions[self._place(group).partition].leader if self._partitions else None

    def _forget(self) -> None:
        """Forget the listings of applications that have not rebalanced for a while."""
        until = time.monotonic() - _KEPT_SECONDS
        for group in [group for group, seen in self._seen.items() if seen < until]:
            ends = self._state.applications.rebalance_ends.pop(group, None)
            self._ends.forget(() if ends is None else ends.partitions)
            del self._seen[group]

    def _warn_if_denied(self) -> None:
        """Say once that rebalances happen unseen: brokers leave out groups without a word."""
        if self._has_seen or self._is_denied:
            return
        generations = sum(one.rebalances for one in self._state.applications.values())
        if self._at_start is None:
            self._at_start = generations
        if generations - self._at_start >= _UNSEEN_GENERATIONS:
            self._is_denied = True
            log.warning(
                "looking for rebalances: none is seen although generations follow each other; "
                "the service needs DESCRIBE on the cluster, or on the groups"
            )
