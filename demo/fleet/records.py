"""Encode a generated fleet as the records of brokers and, for its end offsets, of the service."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator

from confluent_kafka import Producer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.encoding import (
    EncodedMember,
    encode_assignment,
    encode_group_key,
    encode_group_metadata,
    encode_subscription,
)
from caughtup.demo.fleet.group import StoryMember
from caughtup.demo.fleet.offset_commits import RawRecord, commit_key_prefix
from caughtup.demo.fleet.timeline import (
    Committed,
    Deleted,
    Event,
    FleetGroup,
    FleetSettings,
    Generation,
    fleet_topics,
    log_end,
)
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.end_offsets import FORMAT, EndOffsetsRecord
from caughtup.models.records.topics import END_OFFSETS, with_prefix
from caughtup.models.wire.user_data import encode_assignment_info, encode_subscription_info

#: Whether it is Kafka Streams' → the name of the group's protocol.
PROTOCOLS = {True: "stream", False: "range"}
#: Session and rebalance time-out of every member: long, since no heartbeats are sent.
TIMEOUT_MS = 1_800_000
_HOST = "/127.0.0.1"
_PARTITION = struct.Struct(">i")
_VALUE_HEAD = struct.Struct(">hqi")  # version, offset, leader epoch
_VALUE_TAIL = struct.Struct(">Bq")  # no metadata, commit timestamp
_COMMIT_VERSION = 4
_NO_EPOCH = -1


def subscription_of(event: Generation, member: StoryMember) -> bytes:
    """Encode a member's subscription for this generation."""
    user_data = None
    if member.process is not None:
        sums = {TaskId(0, partition): own for partition, own in member.offset_sums.items()}
        user_data = encode_subscription_info(member.process, sums, event.number)
    return encode_subscription([event.group.topic], user_data)


def assignment_of(event: Generation, member: StoryMember) -> bytes:
    """Encode a member's assignment in this generation."""
    user_data = None
    topic = event.group.topic
    if member.process is not None:
        user_data = encode_assignment_info(
            [TaskId(0, partition) for partition in member.active],
            {TaskId(0, one): [TopicPartition(topic, one)] for one in member.standby},
            event.next_rebalance_ms,
        )
    return encode_assignment(topic, member.active, user_data)


def fleet_records(events: Iterable[Event], offsets_partitions: int) -> Iterator[list[RawRecord]]:
    """Yield the records of each event; offsets count from 0."""
    ends = [0] * offsets_partitions
    homes: dict[str, int] = {}
    for event in events:
        name = event.group.name
        home = homes.get(name)
        if home is None:
            home = homes[name] = coordinator_partition(name, offsets_partitions)
        pairs = _pairs(event)
        first, ends[home] = ends[home], ends[home] + len(pairs)
        yield [
            RawRecord(home, offset, event.at_ms, key, value)
            for offset, (key, value) in enumerate(pairs, first)
        ]


def _pairs(event: Event) -> list[tuple[bytes, bytes | None]]:
    if isinstance(event, Committed):
        return _commits(event)
    key = encode_group_key(event.group.name)
    if isinstance(event, Deleted):
        prefix = commit_key_prefix(event.group.name, event.group.topic)
        return [*((prefix + _PARTITION.pack(one), None) for one in event.partitions), (key, None)]
    metadata = (key, _metadata(event))
    if event.number > 1:
        return [metadata]
    # The coordinator first writes an empty group when the first member asks to join.
    return [(key, encode_group_metadata(0, None, None, event.at_ms, ())), metadata]


def _commits(event: Committed) -> list[tuple[bytes, bytes | None]]:
    prefix = commit_key_prefix(event.group.name, event.group.topic)
    topic_id = uuid.uuid5(uuid.NAMESPACE_URL, event.group.topic).bytes
    tags = bytes((1, 0, len(topic_id))) + topic_id  # one field, number 0
    tail = _VALUE_TAIL.pack(1, event.at_ms) + tags
    number, head = _PARTITION.pack, _VALUE_HEAD.pack
    return [
        (prefix + number(partition), head(_COMMIT_VERSION, offset, _NO_EPOCH) + tail)
        for partition, offset in event.offsets.items()
    ]


def _metadata(event: Generation) -> bytes:
    members = [_member(event, member) for member in event.members]
    return encode_group_metadata(
        event.number,
        PROTOCOLS[event.group.streams] if members else None,
        members[0].member_id if members else None,
        event.at_ms,
        members,
    )


def _member(event: Generation, member: StoryMember) -> EncodedMember:
    client_id = event.group.client_id(member.number)
    return EncodedMember(
        _member_id(event.group, client_id),
        client_id,
        _HOST,
        TIMEOUT_MS,
        TIMEOUT_MS,
        subscription_of(event, member),
        assignment_of(event, member),
    )


def _member_id(group: FleetGroup, client_id: str) -> str:
    return f"{client_id}-{uuid.uuid5(uuid.NAMESPACE_URL, group.name + client_id)}"


_TOPIC = with_prefix(END_OFFSETS)
_SECONDS = 120


def write_end_offsets(cluster: EmbeddedCluster, settings: FleetSettings, every_ms: int) -> None:
    """Write each partition's end offsets every ``every_ms`` of the fleet's time, up to its span.

    Raises CaughtupError ``topic_failed`` or ``produce_failed``.
    """
    create_topics(cluster, {_TOPIC: 1}, {"cleanup.policy": "compact"})
    producer = Producer({**cluster.client_config(), "linger.ms": 50})
    for after_ms in range(every_ms, settings.span_ms + 1, every_ms):
        for topic, partitions in fleet_topics(settings).items():
            for partition in range(partitions):
                end, at_ms = (
                    log_end(settings, topic, partition, after_ms),
                    settings.start_ms + after_ms,
                )
                record = EndOffsetsRecord.from_ends(
                    TopicPartition(topic, partition), EndOffsets(0, end, end, at_ms)
                )
                value = FORMAT.encode(record)
                producer.produce(_TOPIC, value, record.key, timestamp=at_ms)
        if left := producer.flush(_SECONDS):
            raise CaughtupError("produce_failed", f"{left} records of ends were not delivered")
