"""Two members of a classic group that speak as Kafka Streams does, so that a test knows the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.groups import find_coordinator, once_coordinated
from caughtup.agents.kafka.protocol.membership import (
    JoinGroupAnswer,
    JoinGroupSettings,
    decode_join_group,
    decode_sync_group,
    join_group_call,
    sync_group_call,
)
from caughtup.models.groups.generation import STREAMS_PROTOCOL
from caughtup.models.ids import TopicPartition
from tests.support.groups.streams import RUNNING, Member, streams_member

_MEMBER_ID_REQUIRED = 79
_TIMEOUT_MS = 60_000
#: Members send no heartbeats.
_SESSION_MS = 1_200_000


class PlayedApplication:
    """An application of two instances on real brokers, of which one runs both tasks.

    Its topics are ``<group>-in`` and ``<group>-counts-changelog``, of two partitions each. Use as an
    async context manager.
    """

    def __init__(self, bootstrap_servers: str, group: str) -> None:
        self.group = group
        self.source, self.changelog = topics_of(group)
        # A broker answers a connection's requests one after another, and a member waits for others.
        config = {"bootstrap_servers": bootstrap_servers}
        self._members = [ClusterProtocol(config, _TIMEOUT_MS / 1000) for _ in range(2)]
        self._ids = ["", ""]
        topics = {self.source: 0}
        self._written = [
            streams_member(
                Member("a", 1, ("0_0", "0_1"), dict.fromkeys(("0_0", "0_1"), RUNNING), ("0_0",)),
                topics,
            ),
            streams_member(Member("b", 2, active=("0_1",)), topics),
        ]
        self._coordinator = -1
        self._leads = 0

    async def __aenter__(self) -> Self:
        for member in self._members:
            await member.__aenter__()
        connections = self._members[0].connections
        self._coordinator = await once_coordinated(
            lambda: find_coordinator(connections, self.group)
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for member in self._members:
            await member.__aexit__(kind, error, traceback)

    async def rebalance(
        self, leaders: Sequence[int], *, joins_after: float = 0.3, decides_in: float = 0.02
    ) -> tuple[int, dict[TopicPartition, int]]:
        """Rebalance; return the generation, and the end offsets that its leader listed.

        ``leaders`` are those of the changelog's partitions. The group's leader joins first, which
        begins a rebalance, the other member after so many seconds, and the leader decides in so
        many.
        """
        begins, follows = self._leads, 1 - self._leads
        first = asyncio.create_task(self._join(begins))
        await asyncio.sleep(joins_after)
        second = asyncio.create_task(self._join(follows))
        answer = await first
        # Otherwise the group was empty, and had a generation with one member. The other's answer may
        # come later than this one: to join again would begin a rebalance that it knows nothing of.
        while not await _ended(second) or answer.generation < second.result().generation:
            answer = await self._join(begins)
        joined = await second
        generation = joined.generation
        leads = self._leads = next(n for n in (0, 1) if self._ids[n] == joined.leader)
        listed: dict[TopicPartition, int] = {}
        for number, broker in enumerate(leaders):
            partition = TopicPartition(self.changelog, number)
            ends, _ = await self._members[leads].list_ends(broker, [partition])
            listed |= ends
        await asyncio.sleep(decides_in)
        assignments = {self._ids[n]: self._written[n].assignment for n in (0, 1)}
        await self._sync(leads, generation, assignments)
        await self._sync(1 - leads, generation, {})
        return generation, listed

    async def _join(self, number: int) -> JoinGroupAnswer:
        settings = JoinGroupSettings(
            self.group, "consumer", (STREAMS_PROTOCOL,), _SESSION_MS, _TIMEOUT_MS
        )
        while True:
            call = join_group_call(settings, self._ids[number], self._written[number].subscription)
            connections = self._members[number].connections
            answer = decode_join_group(await connections.ask(self._coordinator, call))
            self._ids[number] = answer.member_id or self._ids[number]
            if answer.error_code != _MEMBER_ID_REQUIRED:
                raise_for(answer.error_code)
                return answer

    async def _sync(self, number: int, generation: int, assignments: dict[str, bytes]) -> None:
        call = sync_group_call(self.group, generation, self._ids[number], assignments)
        connections = self._members[number].connections
        code, _ = decode_sync_group(await connections.ask(self._coordinator, call))
        raise_for(code)


def topics_of(group: str) -> tuple[str, str]:
    """Return the names of a played application's source and changelog."""
    return f"{group}-in", f"{group}-counts-changelog"


async def _ended(task: asyncio.Task[JoinGroupAnswer]) -> bool:
    """Return whether a task ends within two seconds."""
    done, _ = await asyncio.wait({task}, timeout=2.0)
    return bool(done)
