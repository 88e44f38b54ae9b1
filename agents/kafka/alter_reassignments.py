"""Start and cancel reassignments: for the demo and the benchmarks, never for the service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TopicPartition


def reassigner(bootstrap_servers: str) -> Callable[[TopicPartition, list[int] | None], None]:
    """Return a function that reassigns a partition to the given brokers; None cancels.

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
        raise CaughtupError("no_controller", "no controller leads")
    return leader
