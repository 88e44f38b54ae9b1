"""The requests that ask a coordinator about many of its groups at once.

Source: the message definitions of Kafka's protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from caughtup.agents.kafka.protocol.requests import (
    Call,
    Key,
    classic_array,
    classic_string,
    flexible_array,
    flexible_string,
)

#: The versions that are asked for, the best first. Since 3.8 a group's type is listed, before that
#: all groups are taken for classic ones; since 3.0 many groups' commits are asked for at once.
VERSIONS = {
    Key.LIST_GROUPS: (5, 4),
    Key.DESCRIBE_GROUPS: (5,),
    Key.CONSUMER_GROUP_DESCRIBE: (1, 0),
    Key.STREAMS_GROUP_DESCRIBE: (0,),
    Key.SHARE_GROUP_DESCRIBE: (1,),
    Key.DESCRIBE_SHARE_GROUP_OFFSETS: (1, 0),
    Key.OFFSET_FETCH: (8, 5),
}
#: The first versions of ListGroups with the groups' types, and of OffsetFetch for many groups.
LISTED_TYPES_VERSION, MANY_GROUPS_VERSION = 5, 8

_NO_TAGS = b"\0"
_NULL = b"\0"
_FALSE = b"\0"


def list_groups_call(version: int, states: Iterable[str] = ()) -> Call:
    """Ask a broker for the groups that it coordinates, by default in whatever state (KIP-518).

    Version 4: since 2.6; 5, with the groups' types: since 3.8.
    """
    types = flexible_array(()) if version >= LISTED_TYPES_VERSION else b""
    wanted = flexible_array(map(flexible_string, states))
    return Call(Key.LIST_GROUPS, version, True, wanted + types + _NO_TAGS)


def describe_groups_call(groups: Sequence[str], key: Key, version: int) -> Call:
    """Ask for the members of groups of one type, without the operations that we are allowed.

    DescribeGroups is for classic groups, since 2.4; ConsumerGroupDescribe for those on KIP-848's
    protocol, since 4.0; StreamsGroupDescribe for those on KIP-1071's, and ShareGroupDescribe for share groups, since 4.1.
    """
    return Call(
        key, version, True, flexible_array(map(flexible_string, groups)) + _FALSE + _NO_TAGS
    )


def offset_fetch_call(groups: Sequence[str], version: int) -> Call:
    """Ask for all committed offsets of groups; versions before 8 take one group only.

    Pending commits of transactions are not waited for. Version 5: since 2.1; 8: since 3.0.
    """
    if version < MANY_GROUPS_VERSION:
        (group,) = groups
        return Call(Key.OFFSET_FETCH, version, False, classic_string(group) + classic_array(None))
    asked = [flexible_string(group) + _NULL + _NO_TAGS for group in groups]
    return Call(Key.OFFSET_FETCH, version, True, flexible_array(asked) + _FALSE + _NO_TAGS)
