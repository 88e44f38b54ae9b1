"""Counts a topic's partitions and reads the cluster's id, before anything is read or written."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient

log = logging.getLogger("caughtup.followers")

#: How aiokafka's clients connect: ``bootstrap_servers``, ``security_protocol``, ``ssl_context`` …
Connection = Mapping[str, Any]


async def partition_counts(connection: Connection, topics: Collection[str]) -> dict[str, int]:
    """Return how many partitions topics have; those that don't exist are left out.

    All topics are listed: naming one that isn't there would create it on brokers that create
    topics on demand. Raises KafkaError.
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
    """Return what the cluster calls itself. Raises KafkaError."""
    admin = AIOKafkaAdminClient(**connection, client_id="caughtup-follower")
    await admin.start()
    try:
        described = await admin.describe_cluster()
    finally:
        await admin.close()
    return str(described["cluster_id"])


class Complaint:
    """Logs a problem once, until another one or none comes."""

    def __init__(self) -> None:
        self._last: str | None = None

    def say(self, message: str) -> None:
        """Log a warning unless it was the last one."""
        if message != self._last:
            log.warning("%s", message)
            self._last = message

    def over(self) -> None:
        """Forget the last one."""
        self._last = None
