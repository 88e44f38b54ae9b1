"""Ask a coordinator by which assignor it assigns a group's partitions or tasks next.

Brokers name that of a consumer group since 4.0 (KIP-848), that of a streams group since 4.4
(KIP-1357). It may differ from the one of the last assignment: another configuration of the
assignor triggers no rebalance.
"""

from __future__ import annotations

from aiokafka.errors import UnsupportedVersionError

from caughtup.agents.kafka.protocol import requests
from caughtup.agents.kafka.protocol.brokers import BrokerConnections
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import choose_version, decode
from caughtup.agents.kafka.protocol.described.calls import describe_groups_call
from caughtup.agents.kafka.protocol.described.groups import read_streams_group
from caughtup.agents.kafka.protocol.groups import find_coordinator
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.wire.reader import FlexibleReader

#: The most characters that are kept of a name: brokers may have assignors of others.
MOST_CHARACTERS = 249
#: The least bytes of a structure in an array: its tagged fields.
_LEAST = 1


async def next_assignor(connections: BrokerConnections, group: str, *, streams: bool) -> str | None:
    """Return the name of the assignor; None if the broker's release doesn't say it.

    ``streams``: whether it is a streams group. Needs DESCRIBE on the group. Raises KafkaError.
    """
    coordinator = await find_coordinator(connections, group)
    call = (
        requests.describe_streams_group_call(group)
        if streams
        else describe_groups_call([group], Key.CONSUMER_GROUP_DESCRIBE, 0)
    )
    offered = (await connections.connection(coordinator)).offered
    try:
        choose_version(offered, call.key, (call.version,))
    except UnsupportedVersionError:
        return None
    data = await connections.ask(coordinator, call)
    code, name = await decode(decode_streams_group if streams else decode_consumer_group, data)
    raise_for(code)
    return None if not name else name[:MOST_CHARACTERS]


def decode_consumer_group(data: bytes) -> tuple[int, str | None]:
    """Decode ConsumerGroupDescribe v0 about one group, up to the assignor. Raises DecodeError."""
    reader = FlexibleReader(data)
    reader.int32()  # throttle time
    reader.array_length(_LEAST)
    code = reader.int16()
    reader.nullable_string()  # the error in words
    for _ in ("group", "state"):
        reader.string()
    for _ in ("group epoch", "assignment epoch"):
        reader.int32()
    return code, reader.string()


def decode_streams_group(data: bytes) -> tuple[int, str | None]:
    """Decode StreamsGroupDescribe v1 about one group. Raises DecodeError."""
    reader = FlexibleReader(data)
    reader.int32()  # throttle time
    reader.array_length(_LEAST)
    code = read_streams_group(reader).error_code
    if not reader.is_null():
        return code, None  # the topology in full, which was not asked for
    reader.int8()  # why it is not there
    assignor = reader.nullable_string()
    reader.tagged_fields()
    reader.tagged_fields()
    reader.expect_end()
    return code, assignor
