"""List the log ends of partitions by their leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType

from aiokafka.errors import KafkaError

from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.models.ids import TopicPartition

_NONE: Mapping[TopicPartition, int] = MappingProxyType({})


class LedEnds:
    """Lists log ends, and remembers partitions' leaders until one fails.

    ``on_failure`` is called with each broker that doesn't answer, and why.
    """

    def __init__(self, on_failure: Callable[[int, KafkaError], object]) -> None:
        self._on_failure = on_failure
        self._leaders: dict[TopicPartition, int] = {}

    def unknown(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return those of some partitions whose leader is not known."""
        return set(partitions) - self._leaders.keys()

    async def learn(
        self, protocol: ClusterProtocol, partitions: Collection[TopicPartition]
    ) -> None:
        """Ask for partitions' leaders. Raises KafkaError."""
        described = await protocol.describe_partitions(partitions)
        for partition, one in described.partitions.items():
            if one.leader is not None:
                self._leaders[partition] = one.leader

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the leaders of partitions."""
        for partition in partitions:
            self._leaders.pop(partition, None)

    async def list(
        self,
        protocol: ClusterProtocol,
        partitions: Collection[TopicPartition],
        others: Mapping[TopicPartition, int] = _NONE,
    ) -> dict[TopicPartition, int]:
        """Return the log ends of partitions whose leaders are known, as far as those answer.

        ``others`` are more partitions, with the leaders that the caller knows.
        """
        leaders = {one: self._leaders[one] for one in partitions if one in self._leaders}
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition, leader in sorted(leaders.items()) + sorted(others.items()):
            by_leader.setdefault(leader, []).append(partition)
        brokers = sorted(by_leader)
        answers = await asyncio.gather(
            *(protocol.list_ends(broker, by_leader[broker]) for broker in brokers),
            return_exceptions=True,
        )
        found: dict[TopicPartition, int] = {}
        for broker, answer in zip(brokers, answers, strict=True):
            if isinstance(answer, KafkaError):
                self._on_failure(broker, answer)
                self._leaders = {p: one for p, one in self._leaders.items() if one != broker}
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found |= answer.ends
                self.forget(answer.errors)
        return found
