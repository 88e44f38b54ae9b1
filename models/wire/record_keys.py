"""The types of ``__consumer_offsets`` records, and the keys of groups on the newer protocols."""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import NamedTuple

from caughtup.models.wire.reader import Reader

#: The topic in which group coordinators keep commits and group metadata.
CONSUMER_OFFSETS = "__consumer_offsets"


class RecordType(IntEnum):
    """A record's type, with which its key begins, by Kafka's name.

    SHARE_GROUP_PARTITION_METADATA and STREAMS_GROUP_PARTITION_METADATA are of early releases of
    their protocols, STREAMS_GROUP_TARGET_ASSIGNMENT_RESOLVED_TOPIC_IDS isn't released yet. Source:
    Kafka's ``CoordinatorRecordType``, which has all others.
    """

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_PARTITION_METADATA = 9
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_PARTITION_METADATA = 18
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23
    STREAMS_GROUP_TARGET_ASSIGNMENT_RESOLVED_TOPIC_IDS = 24


# Keys are equal as tuples are, so each holds its record's type: one group has several records.


class ConsumerGroupKey(NamedTuple):
    """The key of a record about a consumer group as a whole (KIP-848; types 3, 4 and 6)."""

    record_type: RecordType
    group: str


class ConsumerGroupMemberKey(NamedTuple):
    """The key of a record about a member of a consumer group (types 5, 7 and 8)."""

    record_type: RecordType
    group: str
    member_id: str


class ConsumerGroupRegularExpressionKey(NamedTuple):
    """The key of the topics that match a regular expression (type 16)."""

    record_type: RecordType
    group: str
    regular_expression: str


class ShareGroupKey(NamedTuple):
    """The key of a record about a share group as a whole (KIP-932; types 9, 11, 12 and 15)."""

    record_type: RecordType
    group: str


class ShareGroupMemberKey(NamedTuple):
    """The key of a record about a member of a share group (types 10, 13 and 14)."""

    record_type: RecordType
    group: str
    member_id: str


class StreamsGroupKey(NamedTuple):
    """The key of a record about a streams group as a whole (KIP-1071; 17, 18, 20, 23 and 24)."""

    record_type: RecordType
    group: str


class StreamsGroupMemberKey(NamedTuple):
    """The key of a record about a member of a streams group (types 19, 21 and 22)."""

    record_type: RecordType
    group: str
    member_id: str


_OfGroup = ConsumerGroupKey | ShareGroupKey | StreamsGroupKey
_WithinGroup = (
    ConsumerGroupMemberKey
    | ConsumerGroupRegularExpressionKey
    | ShareGroupMemberKey
    | StreamsGroupMemberKey
)
#: A key of one of the newer protocols' groups.
NewGroupKey = _OfGroup | _WithinGroup

_OF_GROUP: dict[int, type[_OfGroup]] = {
    RecordType.CONSUMER_GROUP_METADATA: ConsumerGroupKey,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: ConsumerGroupKey,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: ConsumerGroupKey,
    RecordType.SHARE_GROUP_PARTITION_METADATA: ShareGroupKey,
    RecordType.SHARE_GROUP_METADATA: ShareGroupKey,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: ShareGroupKey,
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: ShareGroupKey,
    RecordType.STREAMS_GROUP_METADATA: StreamsGroupKey,
    RecordType.STREAMS_GROUP_PARTITION_METADATA: StreamsGroupKey,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: StreamsGroupKey,
    RecordType.STREAMS_GROUP_TOPOLOGY: StreamsGroupKey,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_RESOLVED_TOPIC_IDS: StreamsGroupKey,
}
_WITHIN_GROUP: dict[int, type[_WithinGroup]] = {
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: ConsumerGroupMemberKey,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: ConsumerGroupMemberKey,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: ConsumerGroupMemberKey,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: ConsumerGroupRegularExpressionKey,
    RecordType.SHARE_GROUP_MEMBER_METADATA: ShareGroupMemberKey,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: ShareGroupMemberKey,
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: ShareGroupMemberKey,
    RecordType.STREAMS_GROUP_MEMBER_METADATA: StreamsGroupMemberKey,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: StreamsGroupMemberKey,
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: StreamsGroupMemberKey,
}


def read_new_group_key(reader: Reader, key_type: int) -> NewGroupKey | None:
    """Read the rest, after the type, of a key of one of the newer protocols' groups.

    None, with nothing read, for any other type. Raises DecodeError. Source: the ``…Key`` messages
    of Kafka's group coordinator.
    """
    if of_group := _OF_GROUP.get(key_type):
        return of_group(RecordType(key_type), _group(reader))
    if within_group := _WITHIN_GROUP.get(key_type):
        return within_group(RecordType(key_type), _group(reader), reader.string())
    return None


def _group(reader: Reader) -> str:
    # Interned: one group's name is in the keys of all its members' records.
    return sys.intern(reader.string())
