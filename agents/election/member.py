"""A member of a classic group: finds the coordinator, joins, sends heartbeats and leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from aiokafka.errors import (
    InvalidSessionTimeoutError,
    KafkaConnectionError,
    MemberIdRequired,
    RequestTimedOutError,
)

from caughtup.agents.kafka.protocol import membership
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.connection import BrokerConnection, raise_for
from caughtup.agents.kafka.protocol.decoding import decode_now
from caughtup.agents.kafka.protocol.groups import DescribedGroup, describe_group, find_coordinator
from caughtup.agents.kafka.protocol.membership import JoinGroupAnswer, JoinGroupSettings
from caughtup.agents.kafka.protocol.requests import Call

#: The time-out of answers, except JoinGroup's: well within a session.
_ANSWER_SECONDS = 2.0
#: The time-out of JoinGroup: a new group waits for more members, by default 3 s
#: (group.initial.rebalance.delay.ms), and members have 10 s to join again.
_JOINING_SECONDS = 15.0
#: Brokers may want longer sessions (group.min.session.timeout.ms), up to this.
_MOST_SESSION_MS = 300_000


class ClassicGroupMember:
    """Joins a group and stays in it by heartbeats. Its calls must not run at the same time.

    ``config``: aiokafka's properties. All calls raise KafkaError: RebalanceInProgressError when the
    member has to join again, UnknownMemberIdError and IllegalGenerationError when the group has
    removed it. After any other failure call ``disconnect``: the next call finds the coordinator
    again. ``describe`` and ``remove`` may be called while another call waits.
    """

    def __init__(self, config: Mapping[str, object], join_settings: JoinGroupSettings) -> None:
        self._config = config
        self._cluster = ClusterProtocol(config, _ANSWER_SECONDS)
        self._join_settings = join_settings
        self._connection: BrokerConnection | None = None
        self.member_id = ""
        self.generation = -1

    @property
    def session_seconds(self) -> float:
        """The session time-out: how long after its last heartbeat a member is removed."""
        return self._join_settings.session_timeout_ms / 1000

    async def join(
        self, subscription: bytes, protocols: tuple[str, ...] | None = None
    ) -> JoinGroupAnswer:
        """Join, or join again; return once all members have. The leader gets all subscriptions.

        ``protocols`` are those to offer, if not those of the settings.
        """
        if protocols is not None:
            self._join_settings = self._join_settings._replace(protocols=protocols)
        while True:
            call = membership.join_group_call(self._join_settings, self.member_id, subscription)
            data = await self._ask(call, _JOINING_SECONDS)
            joined = decode_now(membership.decode_join_group, data)
            try:
                raise_for(joined.error_code)
            except MemberIdRequired:
                self.member_id = joined.member_id
                continue
            except InvalidSessionTimeoutError:
                longer = 2 * self._join_settings.session_timeout_ms
                if longer > _MOST_SESSION_MS:
                    raise
                self._join_settings = self._join_settings._replace(session_timeout_ms=longer)
                continue
            self.member_id, self.generation = joined.member_id, joined.generation
            return joined

    async def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """Return this member's assignment. The leader passes all assignments, others none."""
        call = membership.sync_group_call(
            self._join_settings.group, self.generation, self.member_id, assignments
        )
        code, assignment = decode_now(
            membership.decode_sync_group, await self._ask(call, _JOINING_SECONDS)
        )
        raise_for(code)
        return assignment

    async def beat(self) -> None:
        """Send a heartbeat. Raises the KafkaError that the coordinator answers."""
        call = membership.heartbeat_call(self._join_settings.group, self.generation, self.member_id)
        raise_for(decode_now(membership.decode_heartbeat, await self._ask(call, _ANSWER_SECONDS)))

    async def describe(self) -> DescribedGroup:
        """Return the group as its coordinator describes it."""
        await self._cluster.brokers()
        return await describe_group(self._cluster.connections, self._join_settings.group)

    async def remove(self, member_ids: Sequence[str]) -> None:
        """Remove members from the group at once, by LeaveGroup."""
        await self._cluster.brokers()
        connections = self._cluster.connections
        coordinator = await find_coordinator(connections, self._join_settings.group)
        call = membership.leave_group_call(self._join_settings.group, member_ids)
        raise_for(
            decode_now(membership.decode_leave_group, await connections.ask(coordinator, call))
        )

    async def leave(self) -> None:
        """Leave the group, if this is a member of it."""
        if self.member_id:
            await self.remove([self.member_id])
            self.forget()

    def forget(self) -> None:
        """Drop the member id and generation: the group no longer has this member."""
        self.member_id, self.generation = "", -1

    def disconnect(self) -> None:
        """Close the connection to the coordinator."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close all connections without leaving the group."""
        self.disconnect()
        self._cluster.connections.close()

    async def _ask(self, call: Call, seconds: float) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connect()
                return await connection.ask(call)
        except TimeoutError:
            raise RequestTimedOutError(f"no answer within {seconds:g} s") from None

    async def _connect(self) -> BrokerConnection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        self.disconnect()
        async with asyncio.timeout(_ANSWER_SECONDS):
            await self._cluster.brokers()
            coordinator = await find_coordinator(
                self._cluster.connections, self._join_settings.group
            )
            broker = self._cluster.connections.brokers.get(coordinator)
            if broker is None:
                raise KafkaConnectionError(f"broker {coordinator} is not registered")
            self._connection = await BrokerConnection.open(
                broker.host, broker.port, self._config, _JOINING_SECONDS
            )
        return self._connection
