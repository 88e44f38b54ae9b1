"""Where the replicas of reassigned partitions are: asked of each broker that should have one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from aiokafka.errors import (
    KafkaError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)

from caughtup.agents.kafka.protocol.answers import LogDirectory
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.decoding import words
from caughtup.models.ids import TopicPartition

#: So many partitions are asked for at once: a broker answers for them in some milliseconds.
_BATCH = 1_000
#: Sizes are looked up among all logs of a broker, however few are asked for.
_SIZES_BATCH = 10_000
#: A broker's answers where it has no replica: it isn't to have one, or hasn't heard of it yet.
_NOT_HOSTED = (NotLeaderForPartitionError.errno, UnknownTopicOrPartitionError.errno)


@dataclass(slots=True)
class BrokerReplicas:
    """What one broker answered of its replicas; ``answered`` is False where it didn't.

    ``ends``: log end offsets. ``not_hosted``: partitions that it has no replica of. ``sizes``: in
    bytes. ``directories``: its log directories, None if it didn't say.
    """

    answered: bool = False
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    not_hosted: set[TopicPartition] = field(default_factory=set)
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    directories: tuple[LogDirectory, ...] | None = None


async def observe_replicas(
    protocol: ClusterProtocol,
    replicas: Mapping[TopicPartition, Iterable[int]],
    missing: set[str],
) -> dict[int, BrokerReplicas]:
    """Ask every broker for its replicas, all brokers side by side.

    ``replicas``: the brokers of each partition. What couldn't be had is added to ``missing``.
    """
    by_broker: dict[int, list[TopicPartition]] = {}
    for partition, brokers in sorted(replicas.items()):
        for broker in brokers:
            by_broker.setdefault(broker, []).append(partition)
    found = await asyncio.gather(
        *(_ask(protocol, broker, partitions, missing) for broker, partitions in by_broker.items())
    )
    return dict(zip(by_broker, found, strict=True))


async def _ask(
    protocol: ClusterProtocol,
    broker: int,
    partitions: Sequence[TopicPartition],
    missing: set[str],
) -> BrokerReplicas:
    answers = BrokerReplicas()
    try:
        for start in range(0, len(partitions), _BATCH):
            ends, errors = await protocol.replica_log_ends(
                broker, partitions[start : start + _BATCH]
            )
            answers.ends.update((p, end) for p, end in ends.items() if end >= 0)
            answers.not_hosted.update(p for p, code in errors.items() if code in _NOT_HOSTED)
            answers.answered = True
    except KafkaError as error:
        missing.add(f"replicas on broker {broker}: {words(error)}")
        return answers
    try:
        for start in range(0, len(partitions), _SIZES_BATCH):
            logs = await protocol.log_directories(broker, partitions[start : start + _SIZES_BATCH])
            answers.sizes.update((p, size) for p, size in logs.sizes.items() if size >= 0)
            answers.directories = logs.directories
    except KafkaError as error:
        missing.add(f"sizes on broker {broker}: {words(error)}")
    return answers
