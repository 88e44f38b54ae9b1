"""Ask each broker for its replicas of reassigned partitions: log ends, sizes, directories."""

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
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.models.ids import TopicPartition

#: Partitions in one request for log ends: a broker answers it in a few milliseconds.
_BATCH = 1_000
#: More in one request for sizes, since a broker goes through all its logs for each.
_SIZES_BATCH = 10_000
#: A broker's errors when it has no replica: it should not have one, or does not know of it yet.
_NOT_HOSTED = (NotLeaderForPartitionError.errno, UnknownTopicOrPartitionError.errno)


@dataclass(slots=True)
class BrokerReplicas:
    """One broker's answers about its replicas; ``answered`` is False without any.

    ``ends``: log end offsets. ``not_hosted``: partitions of which it has no replica. ``sizes``: in
    bytes. ``directories``: its log directories, None without an answer.
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
    """Ask all brokers at the same time for their replicas; return the answers by broker id.

    ``replicas``: the brokers of each partition. What could not be read is added to ``missing``.
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
        missing.add(f"replicas on broker {broker}: {explain_failure(error)}")
        return answers
    try:
        for start in range(0, len(partitions), _SIZES_BATCH):
            logs = await protocol.log_directories(broker, partitions[start : start + _SIZES_BATCH])
            answers.sizes.update((p, size) for p, size in logs.sizes.items() if size >= 0)
            answers.directories = logs.directories
    except KafkaError as error:
        missing.add(f"sizes on broker {broker}: {explain_failure(error)}")
    return answers
