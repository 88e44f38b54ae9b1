"""Requests before reading and writing: numbers of partitions, and the cluster's id."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient

log = logging.getLogger("caughtup.followers")

#: aiokafka's connection properties: ``bootstrap_servers``, ``security_protocol``, …
Connection = Mapping[str, Any]


async def partition_counts(connection: Connection, topics: Collection[str]) -> dict[str, int]:
    """Return the topics' numbers of partitions; topics that do not exist are left out.

    All topics are listed: asking for a missing one would create it on brokers that create topics on
    demand. Raises KafkaError.
    """
    admin = AIOKafkaAdminClient(**connection, client_id="caughtup-follower")
    await admin.start()
    try:
        described = await admin.describe_topics()
    finally:
        await admin.close()
    return {
        one["topic"]: len(one["partitions"])
        for one in described
        if one["topic"] in topics and not one["error_code"]
    }


async def cluster_id(connection: Connection) -> str:
    """Return the cluster's id. Raises KafkaError."""
    admin = AIOKafkaAdminClient(**connection, client_id="caughtup-follower")
    await admin.start()
    try:
        described = await admin.describe_cluster()
    finally:
        await admin.close()
    return str(described["cluster_id"])


class RepeatedProblem:
    """Logs a repeated problem once, until it changes or ends."""

    def __init__(self) -> None:
        self._last: str | None = None

    def say(self, message: str) -> None:
        """Log a warning, unless it is the same as the last one."""
        if message != self._last:
            log.warning("%s", message)
            self._last = message

    def over(self) -> None:
        """Record that the problem has ended."""
        self._last = None
