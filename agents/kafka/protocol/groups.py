"""Describe a group: its members, and the operations that we are allowed on it.

librdkafka is not used, since describing a group before there is a coordinator can end the process
(an assertion, librdkafka's issue 4605); nor aiokafka, which leaves out the answer's last field.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from aiokafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    KafkaTimeoutError,
    NotCoordinatorError,
    RequestTimedOutError,
)

from caughtup.agents.kafka.protocol import requests
from caughtup.agents.kafka.protocol.brokers import BrokerConnections
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import decode_now
from caughtup.models.wire.reader import Reader

_T = TypeVar("_T")
_INT32 = struct.Struct(">i")
#: Kafka's value for operations that are not in the answer.
_UNKNOWN_OPERATIONS = -(1 << 31)
#: A busy cluster that was just started can take more than 10 s for the first answer.
_PATIENCE_SECONDS = 30.0
_RETRY_SECONDS = 0.1
#: The first request about a group makes the brokers create __consumer_offsets; and after a change
#: of leader the new one reads the partition of that topic before it coordinates groups.
_NOT_YET = (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaTimeoutError,
    NotCoordinatorError,
    RequestTimedOutError,
)


class Coordinator(NamedTuple):
    """The answer to FindCoordinator."""

    error_code: int
    message: str | None
    broker: int


class DescribedMember(NamedTuple):
    """A member of a group. Subscription and assignment are empty unless the group is stable."""

    member_id: str
    subscription: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """The answer to DescribeGroups about one group; ``operations`` is Kafka's bit field.

    ``protocol`` is empty unless the group is stable.
    """

    error_code: int
    protocol_type: str
    members: tuple[DescribedMember, ...]
    operations: int
    protocol: str = ""


async def find_coordinator(
    connections: BrokerConnections, name: str, *, transactional: bool = False
) -> int:
    """Return the id of the broker that coordinates a group, or a ``transactional`` id.

    Raises KafkaError: CoordinatorNotAvailableError while a new cluster has no coordinator.
    """
    call = requests.find_coordinator_call(name, transactional=transactional)
    _, data = await connections.ask_any(lambda _: call)
    found = decode_now(decode_coordinator, data)
    raise_for(found.error_code, found.message)
    return found.broker


async def describe_group(connections: BrokerConnections, group: str) -> DescribedGroup:
    """Describe a group; a group that does not exist has no members. Raises KafkaError."""
    coordinator = await find_coordinator(connections, group)
    data = await connections.ask(coordinator, requests.describe_group_call(group))
    described = decode_now(decode_described_group, data)
    raise_for(described.error_code)
    return described


async def group_operations(connections: BrokerConnections, group: str) -> frozenset[int] | None:
    """Return the operations that we are allowed on a group, as Kafka's numbers.

    The group need not exist. The result is empty if we may not describe it, and None if the broker
    does not report operations. Raises KafkaError: CoordinatorNotAvailableError while a new cluster
    has no coordinator.
    """
    try:
        described = await describe_group(connections, group)
    except GroupAuthorizationFailedError:
        return frozenset()
    if described.operations == _UNKNOWN_OPERATIONS:
        return None
    return frozenset(number for number in range(31) if described.operations >> number & 1)


async def once_coordinated(ask: Callable[[], Awaitable[_T]]) -> _T:
    """Repeat a request about a group until its coordinator is ready, and return the answer.

    Waits for up to 30 s. Raises KafkaError: the last failure, after that time.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return await ask()
        except _NOT_YET:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(_RETRY_SECONDS)


def decode_coordinator(data: bytes) -> Coordinator:
    """Decode the answer to FindCoordinator v2. Raises DecodeError."""
    reader = Reader(data)
    reader.int32()  # throttle time
    code, message, broker = reader.int16(), reader.nullable_string(), reader.int32()
    reader.string()  # host
    reader.int32()  # port
    reader.expect_end()
    return Coordinator(code, message, broker)


def decode_described_group(data: bytes) -> DescribedGroup:
    """Decode the answer to DescribeGroups v3 about one group. Raises DecodeError."""
    reader = Reader(data)
    reader.int32()  # throttle time
    reader.array_length(1)
    code = reader.int16()
    for _ in ("group", "state"):
        reader.string()
    protocol_type, protocol = reader.string(), reader.string()
    members = []
    for _ in range(reader.array_length(1)):
        member_id = reader.string()
        for _ in ("client id", "client host"):
            reader.string()
        members.append(DescribedMember(member_id, reader.byte_string(), reader.byte_string()))
    operations = reader.int32()
    reader.expect_end()
    return DescribedGroup(code, protocol_type, tuple(members), operations, protocol)
