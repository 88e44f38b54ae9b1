"""Observe reassignments: one round asks the controller and every broker; and the pause between rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import TracebackType
from typing import Self, TypeVar

from aiokafka.errors import (
    KafkaError,
    UnknownTopicOrPartitionError,
    for_code,
)

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.protocol.answers import LogDirectory
from caughtup.agents.kafka.protocol.client import ClusterProtocol, PartitionReassignment, Quorum
from caughtup.agents.kafka.protocol.cluster_answers import (
    Broker,
    DescribedPartitions,
    PartitionInfo,
    oldest_release,
    zookeeper_decides,
)
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.kafka.recent_names import RecentNames, ask_unless_refused
from caughtup.agents.probes.replicas import BrokerReplicas, observe_replicas
from caughtup.agents.probes.throttles import ThrottleObserver, ThrottleRates
from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import (
    CLUSTER_FORMAT,
    FORMAT,
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
    offsets_remaining,
)

_Told = TypeVar("_Told")

#: Rounds take at most one tenth of the time. But a slow round may only have waited for brokers, so
#: the pause need not be longer than this rate of partitions asks for.
_SHARE = 10
_PARTITIONS_A_SECOND = 150
#: A reassignment that ends within this time is observed as often as the setting allows.
_NEAR_SECONDS = 60.0
#: The factors of the pause while no reassignment is near its end, and while there is none at all.
_FAR, _IDLE = 2.0, 2.5


class Pace:
    """Computes the pause after each round. ``floor_seconds``: the shortest pause."""

    def __init__(self, floor_seconds: float) -> None:
        self._floor = floor_seconds
        self._before: Mapping[TopicPartition, tuple[int, int]] = {}

    def pause_seconds(self, moving: Sequence[ReassignmentRecord], round_seconds: float) -> float:
        """Return the pause in seconds after a round that took ``round_seconds``."""
        remaining = {
            observation.topic_partition: (observation.as_of_ms, left)
            for observation in moving
            if (left := offsets_remaining(observation)) is not None
        }
        soonest = min(
            (
                _seconds_left(self._before[partition], now)
                for partition, now in remaining.items()
                if partition in self._before
            ),
            default=0.0,
        )
        self._before = remaining
        factor = 1.0
        if not moving:
            factor = _IDLE
        elif soonest > _NEAR_SECONDS:
            factor = _FAR
        rest = min(round_seconds * (_SHARE - 1), len(moving) / _PARTITIONS_A_SECOND)
        return max(self._floor * factor, rest)


def _seconds_left(before: tuple[int, int], now: tuple[int, int]) -> float:
    """Return the seconds to the end of a copy at its rate between two points (ms, offsets left)."""
    if now[1] == 0:
        return 0.0
    copied = before[1] - now[1]
    if copied <= 0:
        return float("inf")
    return now[1] * (now[0] - before[0]) / 1000 / copied


#: The time-out of each request in a round.
TIMEOUT_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class ReassignmentRound:
    """What one round observed.

    ``listed``: whether the controller listed the reassignments; if not, nothing is known of them.
    ``ongoing``: an observation of each listed partition, sorted; without metadata it has no leader
    epoch, ISR or leader. ``described``: the additional partitions that were asked for; None if the
    partition does not exist, absent if the metadata could not be read.
    """

    cluster: ClusterRecord
    listed: bool
    ongoing: tuple[ReassignmentRecord, ...]
    described: Mapping[TopicPartition, PartitionInfo | None] = field(default_factory=dict)


class ReassignmentObserver:
    """Observes reassignments in rounds. Use as an async context manager.

    ``config``: aiokafka's properties. Entering connects, and raises KafkaError if no broker can be
    reached.
    """

    def __init__(
        self, config: Mapping[str, object], timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        self.protocol = ClusterProtocol(config, timeout_seconds)
        self._throttles = ThrottleObserver(self.protocol)
        #: What the controller refused to tell us.
        self._refused = RecentNames()

    async def __aenter__(self) -> Self:
        await self.protocol.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._throttles.stop()
        await self.protocol.__aexit__(kind, error, traceback)

    async def observe(self, also: Collection[TopicPartition] = ()) -> ReassignmentRound:
        """Observe once; ``also`` has partitions whose metadata is wanted, reassigned or not.

        What could not be read is named in ``cluster.missing``, in words. Raises KafkaError only if
        no broker can be reached.
        """
        missing: set[str] = set()
        brokers = await self.protocol.brokers()
        listing, quorum = await asyncio.gather(
            self._ask("partitions in movement", self.protocol.list_reassignments, missing),
            self._quorum(missing),
        )
        listed = listing or {}
        replicas = {partition: moving.replicas for partition, moving in listed.items()}
        hosts = {broker for brokers_of in replicas.values() for broker in brokers_of}
        as_of_ms = now_ms()
        described, answers, throttles = await asyncio.gather(
            # The listing was sorted in a thread; sorting a sorted sequence again is quick.
            self._describe([*replicas, *sorted(set(also) - replicas.keys())], missing),
            observe_replicas(self.protocol, replicas, missing),
            self._throttles.observe({partition.topic for partition in listed}, hosts, missing),
        )
        offered = self.protocol.connections.all_offered()
        by_zookeeper = any(map(zookeeper_decides, offered))
        cluster = ClusterRecord(
            CLUSTER_FORMAT.schema,
            as_of_ms=as_of_ms,
            brokers={
                broker.id: _broker_observation(broker, answers.get(broker.id), throttles.rates)
                for broker in sorted(brokers, key=attrgetter("id"))
                if broker.id >= 0
            },
            quorum_leader=quorum.leader,
            quorum_epoch=quorum.epoch,
            software=None if by_zookeeper else oldest_release(offered),
            zookeeper=by_zookeeper,
            throttles=dict(sorted(throttles.topics.items())),
            missing=tuple(sorted(missing)),
        )
        observations = await asyncio.to_thread(
            _partition_observations,
            listed,
            described.partitions if described else {},
            answers,
            as_of_ms,
        )
        return ReassignmentRound(
            cluster, listing is not None, observations, _additional_partitions(also, described)
        )

    async def _ask(
        self, what: str, ask: Callable[[], Awaitable[_Told]], missing: set[str]
    ) -> _Told | None:
        return await ask_unless_refused(self._refused, what, ask, missing)

    async def _quorum(self, missing: set[str]) -> Quorum:
        found = await self._ask("the controllers' quorum", self.protocol.describe_quorum, missing)
        if found is None or min(found.leader or 0, found.epoch or 0) < 0:
            return Quorum(None, None)
        return found

    async def _describe(
        self, wanted: Collection[TopicPartition], missing: set[str]
    ) -> DescribedPartitions | None:
        try:
            described = await self.protocol.describe_partitions(wanted)
        except KafkaError as error:
            missing.add(f"replicas, ISR and leaders: {explain_failure(error)}")
            return None
        for topic, code in sorted(described.errors.items()):
            if code != UnknownTopicOrPartitionError.errno:
                missing.add(
                    f"replicas, ISR and leaders: {explain_failure(for_code(code)())} {topic}"
                )
        return described


def _broker_observation(
    broker: Broker, answers: BrokerReplicas | None, rates: Mapping[int, ThrottleRates]
) -> BrokerRecord:
    directories = (
        answers.directories if answers is not None and answers.directories is not None else ()
    )
    fullest = min(
        (
            d
            for d in directories
            if d.usable_bytes is not None and d.usable_bytes >= 0 and (d.total_bytes or 0) > 0
        ),
        key=_usable_part,
        default=LogDirectory("", 0, None, None),
    )
    rate = rates.get(broker.id, ThrottleRates())
    return BrokerRecord(
        fenced=broker.fenced,
        leader_rate=rate.leader,
        follower_rate=rate.follower,
        usable_bytes=fullest.usable_bytes,
        total_bytes=fullest.total_bytes,
        offline_directories=tuple(sorted(d.path for d in directories if d.error_code)),
    )


def _usable_part(directory: LogDirectory) -> float:
    return (directory.usable_bytes or 0) / (directory.total_bytes or 1)


def _partition_observations(
    listed: Mapping[TopicPartition, PartitionReassignment],
    described: Mapping[TopicPartition, PartitionInfo],
    answers: Mapping[int, BrokerReplicas],
    as_of_ms: int,
) -> tuple[ReassignmentRecord, ...]:
    """Combine the answers of the controller, the metadata and each replica's broker."""
    observations = []
    for partition, (replicas, adding, removing) in sorted(listed.items()):
        info = described.get(partition)
        hosts = [(broker, answers[broker]) for broker in dict.fromkeys(replicas)]
        not_hosted = _not_hosted(partition, hosts, info)
        observations.append(
            ReassignmentRecord(
                FORMAT.schema,
                *partition,
                replicas=replicas,
                adding=adding,
                removing=removing,
                isr=() if info is None else info.isr,
                leader=None if info is None else info.leader,
                as_of_ms=as_of_ms,
                leader_epoch=None if info is None else info.leader_epoch,
                offline=() if info is None else info.offline,
                log_ends={b: host.ends[partition] for b, host in hosts if partition in host.ends},
                sizes={b: host.sizes[partition] for b, host in hosts if partition in host.sizes},
                not_hosted=not_hosted,
                unanswered=tuple(
                    b for b, host in hosts if partition not in host.ends and b not in not_hosted
                ),
            )
        )
    return tuple(observations)


def _not_hosted(
    partition: TopicPartition,
    hosts: Sequence[tuple[int, BrokerReplicas]],
    info: PartitionInfo | None,
) -> tuple[int, ...]:
    """Return the brokers that have no such replica.

    With the same error, brokers that are not Kafka's may say that they don't lead it: then a follower in
    the ISR says so, too, or the broker tells the size of its log.
    """
    found = [broker for broker, host in hosts if partition in host.not_hosted]
    if info is not None and any(one in info.isr and one != info.leader for one in found):
        return ()
    sized = {broker for broker, host in hosts if partition in host.sizes}
    return tuple(one for one in found if one not in sized)


def _additional_partitions(
    wanted: Collection[TopicPartition], described: DescribedPartitions | None
) -> dict[TopicPartition, PartitionInfo | None]:
    """Return the metadata of the additional partitions; None for one that does not exist."""
    if described is None:
        return {}
    gone = UnknownTopicOrPartitionError.errno
    return {
        partition: described.partitions.get(partition)
        for partition in sorted(wanted)
        if described.errors.get(partition.topic, gone) == gone
    }
