"""Observe end offsets, with what belongs to them: readable ends, ids of topics, racks of replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka.admin import AdminClient

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.end_offset_listing import (
    PATIENCE_SECONDS,
    EndOffsetLister,
    EndOffsetListing,
)
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.readable_ends import ReadableEnds
from caughtup.agents.process.health import END_OFFSETS
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState

#: The subject of faults in a round.
PROBE = END_OFFSETS


class ObservedEnds(NamedTuple):
    """What a round observed.

    ``ends``: the listed end offsets, with readable ends where they are known. ``topic_ids``: the ids
    (16 bytes) of topics that the state knows no id of.
    """

    listing: EndOffsetListing
    ends: dict[TopicPartition, EndOffsets]
    topic_ids: dict[str, bytes]


class EndOffsetObserver:
    """Observes end offsets again and again: for the service's probe, and for a command's look."""

    def __init__(self, settings: Settings, state: ClusterState, client: AdminClient) -> None:
        self._state = state
        self._lister = EndOffsetLister(client)
        self._readable = ReadableEnds(settings, state)

    def close(self) -> None:
        """Ask no more."""
        self._lister.close()

    async def observe(
        self,
        protocol: ClusterProtocol,
        wants: Callable[[str], bool],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        at_once: bool = False,
    ) -> ObservedEnds:
        """Observe the topics that ``wants(topic)`` names, through the protocol's connections.

        The state gets the partitions without a leader, and the racks of replicas.

        ``at_once``: find all readable ends in this round, also those of logs that grow. Readable ends
        and racks that cannot be found count as faults. Raises KafkaException when the cluster cannot
        be reached.
        """
        listing = await self._lister.list_ends(protocol, wants, patience_seconds)
        found, faults, now = listing.found, self._state.faults, now_ms()
        self._state.leaderless = listing.leaderless
        self._state.topic_changes.apply(sorted(listing.appeared), sorted(listing.vanished), now)
        with faults.isolated(PROBE, "readable ends", now):
            found = await self._readable.completed(found, at_once=at_once)
        with faults.isolated(PROBE, "racks of replicas", now):
            racked = self._state.racked_topics()
            if racked is not None:
                self._state.replicas = await asyncio.to_thread(self._lister.replica_racks, racked)
        named: dict[str, bytes] = {}
        if topics := self._state.unnamed_topics():
            named = await asyncio.to_thread(self._lister.topic_ids, topics)
        return ObservedEnds(listing, found, named)
