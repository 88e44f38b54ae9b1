"""The answer to ListGroups: which groups a broker coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from caughtup.agents.kafka.protocol.brokers import BrokerConnections
from caughtup.agents.kafka.protocol.connection import raise_for
from caughtup.agents.kafka.protocol.decoding import decode_now
from caughtup.agents.kafka.protocol.described.calls import LISTED_TYPES_VERSION, list_groups_call
from caughtup.models.wire.reader import FlexibleReader

_LEAST_BYTES = 4
#: The first version of ListGroups that takes states.
_STATES_VERSION = 4
CLASSIC = "classic"


class ListedGroup(NamedTuple):
    """A group as its coordinator lists it.

    ``state`` is Kafka's name of its state, and ``group_type`` is ``classic``, ``consumer``,
    ``streams`` or ``share``; ``protocol_type`` is empty for a group without members.
    """

    group: str
    group_type: str
    protocol_type: str
    state: str


async def groups_in_states(
    connections: BrokerConnections, broker: int, states: Iterable[str]
) -> dict[str, str]:
    """Return the state of each group in one of some states that a broker coordinates.

    Left out are those that we may not describe, unless we may describe the cluster. Raises
    KafkaError.
    """
    data = await connections.ask(broker, list_groups_call(_STATES_VERSION, states))
    code, found = decode_now(lambda raw: decode_listed_groups(raw, _STATES_VERSION), data)
    raise_for(code)
    return {one.group: one.state for one in found}


def decode_listed_groups(data: bytes, version: int) -> tuple[int, list[ListedGroup]]:
    """Decode the answer to ListGroups v4 or v5: an error code and the groups. Raises DecodeError.

    Before v5 every group is called classic.
    """
    reader = FlexibleReader(data)
    reader.int32()  # throttle time
    code = reader.int16()

    def listed(one: FlexibleReader) -> ListedGroup:
        group, protocol_type, state = one.string(), one.string(), one.string()
        group_type = one.string().lower() if version >= LISTED_TYPES_VERSION else CLASSIC
        one.tagged_fields()
        return ListedGroup(group, group_type, protocol_type, state)

    found = reader.array(listed, _LEAST_BYTES)
    reader.tagged_fields()
    reader.expect_end()
    return code, list(found)
