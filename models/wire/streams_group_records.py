"""The coordinator's records of a Kafka Streams application on the new protocol (KIP-1071).

A streams group's state is the last value of each of its records: its epoch and topology, its
members, their target assignments and their current assignments. Every value is of version 0 and
flexible.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from caughtup.models.wire.bounds import epoch
from caughtup.models.wire.partition_metadata import (
    StreamsGroupPartitionMetadata,
    decode_streams_group_partition_metadata,
)
from caughtup.models.wire.reader import FlexibleReader, open_value, tagged_field
from caughtup.models.wire.record_keys import RecordType
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
    StreamsGroupTargetAssignmentMetadata,
    StreamsGroupTargetAssignmentResolvedTopicIds,
    decode_current_member_assignment,
    decode_resolved_topic_ids,
    decode_target_assignment_member,
    decode_target_assignment_metadata,
)
from caughtup.models.wire.streams_group_topology import (
    StreamsGroupTopology,
    decode_streams_group_topology,
)

_VALIDATED_TOPOLOGY_EPOCH_TAG = 0
_LAST_ASSIGNMENT_CONFIGS_TAG = 1
_STORED_DESCRIPTION_TOPOLOGY_EPOCH_TAG = 2
_FAILED_DESCRIPTION_TOPOLOGY_EPOCH_TAG = 3
_NO_EPOCH = -1
_PORT = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class StreamsGroupMetadata:
    """A group (type 17).

    Epochs are -1 if absent: ``validated_topology_epoch`` is that of the topology whose topics were
    validated, ``stored…`` and ``failed_description_topology_epoch`` those whose description a
    broker's plugin stored or refused (KIP-1331). ``last_assignment_configs`` are the configs of the
    last target assignment, empty if unknown.
    """

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    last_assignment_configs: dict[str, str]
    stored_description_topology_epoch: int
    failed_description_topology_epoch: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address at which a process answers queries (``application.server``)."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsGroupMemberMetadata:
    """A member: one stream thread of the process ``process_id``, a UUID's text (type 19)."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: dict[str, str]


StreamsGroupRecord = (
    StreamsGroupMetadata
    | StreamsGroupPartitionMetadata
    | StreamsGroupMemberMetadata
    | StreamsGroupTargetAssignmentMetadata
    | StreamsGroupTargetAssignmentMember
    | StreamsGroupCurrentMemberAssignment
    | StreamsGroupTopology
    | StreamsGroupTargetAssignmentResolvedTopicIds
)


def decode_streams_group_record(record_type: RecordType, data: bytes) -> StreamsGroupRecord:
    """Decode a value of types 17 to 24.

    Unknown tagged fields and trailing bytes are tolerated, as Kafka's coordinator tolerates them.
    Raises DecodeError (``unknown_version`` for a later version than 0, and ``out_of_range`` or
    ``bad_time`` for impossible numbers), and KeyError for another type. Source: the
    ``StreamsGroup…Value`` messages of Kafka's group coordinator.
    """
    return _DECODERS[record_type](data)


def _metadata(data: bytes) -> StreamsGroupMetadata:
    reader = open_value(data, "streams group metadata")
    group_epoch, metadata_hash = epoch(reader.int32()), reader.int64()
    fields = reader.tagged_fields()

    def topology_epoch(tag: int) -> int:
        value = tagged_field(fields, tag, FlexibleReader.int32)
        return _NO_EPOCH if value is None else epoch(value)

    return StreamsGroupMetadata(
        epoch=group_epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=topology_epoch(_VALIDATED_TOPOLOGY_EPOCH_TAG),
        last_assignment_configs=tagged_field(
            fields, _LAST_ASSIGNMENT_CONFIGS_TAG, FlexibleReader.nullable_entries
        )
        or {},
        stored_description_topology_epoch=topology_epoch(_STORED_DESCRIPTION_TOPOLOGY_EPOCH_TAG),
        failed_description_topology_epoch=topology_epoch(_FAILED_DESCRIPTION_TOPOLOGY_EPOCH_TAG),
    )


def _member_metadata(data: bytes) -> StreamsGroupMemberMetadata:
    reader = open_value(data, "streams group member metadata")
    # Keyword arguments are evaluated as written, and that is the order on the wire.
    member = StreamsGroupMemberMetadata(
        instance_id=reader.nullable_string(),
        rack_id=reader.nullable_string(),
        client_id=reader.string(),
        client_host=reader.string(),
        rebalance_timeout_ms=reader.int32(),
        topology_epoch=epoch(reader.int32()),
        process_id=reader.string(),
        user_endpoint=None if reader.is_null() else read_endpoint(reader),
        client_tags=reader.entries(),
    )
    reader.tagged_fields()
    return member


def read_endpoint(reader: FlexibleReader) -> Endpoint:
    """Read an address, which records and answers have in the same form. Raises DecodeError."""
    endpoint = Endpoint(reader.string(), reader.unpack(_PORT)[0])
    reader.tagged_fields()
    return endpoint


_DECODERS: dict[RecordType, Callable[[bytes], StreamsGroupRecord]] = {
    RecordType.STREAMS_GROUP_METADATA: _metadata,
    RecordType.STREAMS_GROUP_PARTITION_METADATA: decode_streams_group_partition_metadata,
    RecordType.STREAMS_GROUP_MEMBER_METADATA: _member_metadata,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: decode_target_assignment_metadata,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: decode_target_assignment_member,
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: decode_current_member_assignment,
    RecordType.STREAMS_GROUP_TOPOLOGY: decode_streams_group_topology,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_RESOLVED_TOPIC_IDS: decode_resolved_topic_ids,
}
