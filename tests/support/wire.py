"""Encoders, for tests, of every version of the formats that caughtup only decodes."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import LONG_MAX
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    ConsumerSubscription,
    GroupMetadata,
)
from caughtup.models.wire.user_data import AssignmentInfo, HostInfo, SubscriptionInfo

NO_TAGS: dict[int, bytes] = {}


def number(layout: str, value: int) -> bytes:
    return struct.pack(">" + layout, value)


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def length(count: int | None, layout: str, flexible: bool) -> bytes:
    """Encode a length or count, None for null."""
    if flexible:
        return uvarint(0 if count is None else count + 1)
    return number(layout, -1 if count is None else count)


def string(text: str | None, flexible: bool = False) -> bytes:
    raw = None if text is None else text.encode()
    return length(None if raw is None else len(raw), "h", flexible) + (raw or b"")


def byte_string(raw: bytes | None, flexible: bool = False) -> bytes:
    return length(None if raw is None else len(raw), "i", flexible) + (raw or b"")


def array(elements: Iterable[bytes], flexible: bool = False) -> bytes:
    written = list(elements)
    return length(len(written), "i", flexible) + b"".join(written)


def tagged_fields(fields: dict[int, bytes], flexible: bool = True) -> bytes:
    if not flexible:
        return b""
    written = (uvarint(tag) + uvarint(len(raw)) + raw for tag, raw in sorted(fields.items()))
    return uvarint(len(fields)) + b"".join(written)


def modified_utf(text: str) -> bytes:
    """Encode like Java's ``DataOutputStream.writeUTF``."""
    units = struct.iter_unpack(">H", text.encode("utf-16-be"))
    raw = b"".join(
        b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass")
        for (unit,) in units
    )
    return number("H", len(raw)) + raw


def offset_key(key: OffsetKey, key_type: int = 1) -> bytes:
    return (
        number("h", key_type) + string(key.group) + string(key.topic) + number("i", key.partition)
    )


def group_key(group: str) -> bytes:
    return number("h", 2) + string(group)


def offset_commit(
    commit: OffsetCommit, version: int, unknown_tags: dict[int, bytes] = NO_TAGS
) -> bytes:
    flexible = version >= 4
    topic_id = {} if commit.topic_id is None else {0: commit.topic_id}
    return b"".join(
        (
            number("h", version),
            number("q", commit.offset),
            number("i", commit.leader_epoch) if version >= 3 else b"",
            string(commit.metadata, flexible),
            number("q", commit.commit_timestamp_ms),
            number("q", commit.expire_timestamp_ms) if version == 1 else b"",
            tagged_fields(unknown_tags | topic_id, flexible),
        )
    )


def group_metadata(
    metadata: GroupMetadata, version: int, unknown_tags: dict[int, bytes] = NO_TAGS
) -> bytes:
    flexible = version >= 4
    members = (
        string(member.member_id, flexible)
        + (string(member.group_instance_id, flexible) if version >= 3 else b"")
        + string(member.client_id, flexible)
        + string(member.client_host, flexible)
        + (number("i", member.rebalance_timeout_ms) if version >= 1 else b"")
        + number("i", member.session_timeout_ms)
        + byte_string(member.subscription, flexible)
        + byte_string(member.assignment, flexible)
        + tagged_fields(unknown_tags, flexible)
        for member in metadata.members
    )
    return b"".join(
        (
            number("h", version),
            string(metadata.protocol_type, flexible),
            number("i", metadata.generation),
            string(metadata.protocol, flexible),
            string(metadata.leader, flexible),
            number("q", metadata.state_timestamp_ms) if version >= 2 else b"",
            array(members, flexible),
            tagged_fields(unknown_tags, flexible),
        )
    )


def _topic_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return array(
        string(topic) + array(number("i", n) for n in numbers)
        for topic, numbers in by_topic.items()
    )


def subscription(value: ConsumerSubscription) -> bytes:
    return b"".join(
        (
            number("h", value.version),
            array(string(topic) for topic in value.topics),
            byte_string(value.user_data),
            _topic_partitions(value.owned) if value.version >= 1 else b"",
            number("i", value.generation) if value.version >= 2 else b"",
            string(value.rack) if value.version >= 3 else b"",
        )
    )


def assignment(value: ConsumerAssignment) -> bytes:
    return (
        number("h", value.version)
        + _topic_partitions(value.partitions)
        + byte_string(value.user_data)
    )


def subscription_info(value: SubscriptionInfo) -> bytes:
    def text(words: str) -> bytes:
        return byte_string(words.encode())

    def grouped() -> Iterable[bytes]:
        for subtopology in dict.fromkeys(task.subtopology for task in value.offset_sums):
            yield number("i", subtopology) + array(
                struct.pack(">iq", task.partition, offset_sum)
                for task, offset_sum in value.offset_sums.items()
                if task.subtopology == subtopology
            )

    def flat() -> Iterable[bytes]:
        for task, offset_sum in value.offset_sums.items():
            yield struct.pack(">iiq", *task, offset_sum) + string(None)

    tags = (text(key) + text(tag) for key, tag in value.client_tags.items())
    return b"".join(
        (
            struct.pack(">ii", value.version, value.latest_supported_version),
            struct.pack(">qq", *value.process_id),
            text(value.user_end_point),
            array(flat() if value.version >= 10 else grouped()),
            number("b", value.unique_field) if value.version >= 8 else b"",
            number("i", value.error_code) if value.version >= 9 else b"",
            array(tags) if value.version >= 11 else b"",
        )
    )


def assignment_info(value: AssignmentInfo) -> bytes:
    hosts = (value.active_by_host, value.standby_by_host)
    topics = sorted({p.topic for by_host in hosts for ps in by_host.values() for p in ps})

    def task_id(task: TaskId) -> bytes:
        return struct.pack(">ii", *task) + (number("i", 0) if value.version >= 10 else b"")

    def partitions_of(host: HostInfo, partitions: tuple[TopicPartition, ...]) -> bytes:
        indexed = (struct.pack(">ii", topics.index(p.topic), p.partition) for p in partitions)
        return modified_utf(host.host) + number("i", host.port) + array(indexed)

    standby = (
        task_id(task) + array(modified_utf(p.topic) + number("i", p.partition) for p in partitions)
        for task, partitions in value.standby.items()
    )
    next_rebalance_ms = value.next_rebalance_ms
    return b"".join(
        (
            struct.pack(">ii", value.version, value.commonly_supported_version),
            array(map(task_id, value.active)),
            array(standby),
            array(number("i", index) + modified_utf(t) for index, t in enumerate(topics)),
            *(array(partitions_of(*entry) for entry in by_host.items()) for by_host in hosts),
            number("i", value.error_code),
            number("q", LONG_MAX if next_rebalance_ms is None else next_rebalance_ms),
        )
    )
