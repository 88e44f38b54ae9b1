"""Encode the requests of Kafka's protocol that no Python client offers in public.

Each function has a fixed or given version, and names the release since which brokers take it.
Source: the message definitions of Kafka's protocol.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from caughtup.models.ids import TopicPartition

#: Kafka's "debugging" replica id: any replica answers with its own log end, leader or not.
DEBUGGING_REPLICA = -2
#: The timestamps that stand for the log end and the log start.
LATEST, EARLIEST = -1, -2
#: The replica id of a consumer, and the isolation levels.
CONSUMER_REPLICA = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
#: Those of ListOffsets, the wanted one first: some services offer none before 5.
LIST_OFFSETS_VERSIONS = (2, 5)
#: A broker's limit for the partitions of one page.
PAGE_PARTITIONS = 2_000
#: The number of topics in one Metadata request, whose answer has all their partitions.
PAGE_TOPICS = 100

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_OFFSETS_HEAD = struct.Struct(">ib")  # replica, isolation
_OFFSETS_ENTRY = struct.Struct(">iq")  # partition, timestamp
_EPOCH_OFFSETS_ENTRY = struct.Struct(">iiq")  # partition, current epoch (-1: any), timestamp
_EPOCH_ENTRY = struct.Struct(">iii")  # partition, current epoch, the epoch asked for
_FETCH_HEAD = struct.Struct(">iiiib")  # replica, wait, least and most bytes, isolation
_FETCH_ENTRY = struct.Struct(">iqi")  # partition, offset, most bytes
_NO_TAGS = b"\0"
_NULL = b"\0"
_METADATA_TOPIC = "__cluster_metadata"


class Key(IntEnum):
    """The API keys of the requests."""

    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    END_TXN = 26
    DESCRIBE_CONFIGS = 32
    DESCRIBE_LOG_DIRS = 35
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    DESCRIBE_QUORUM = 55
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_DESCRIBE = 69
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_DESCRIBE = 77
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90

    @property
    def request(self) -> str:
        """The request's name, as Kafka writes it."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class ResourceType(IntEnum):
    """The kind of resource that a config belongs to."""

    TOPIC = 2
    BROKER = 4


class Call(NamedTuple):
    """A request: its API key, version, whether that is flexible (KIP-482), and encoded fields."""

    key: Key
    version: int
    flexible: bool
    body: bytes

    @property
    def has_answer_tags(self) -> bool:
        """Whether the answer's header has tagged fields: that of ApiVersions never has."""
        return self.flexible and self.key is not Key.API_VERSIONS


def api_versions_call() -> Call:
    """Ask which requests and features a broker offers. Since 2.4."""
    return Call(
        Key.API_VERSIONS, 3, True, flexible_string("caughtup") + flexible_string("0") + _NO_TAGS
    )


def describe_cluster_call(version: int) -> Call:
    """Ask for the registered brokers. Version 0: since 2.8; 2, with fenced ones: since 4.0."""
    endpoints = b"" if version < 1 else b"\1"  # of brokers
    fenced = b"" if version < 2 else b"\1"
    return Call(Key.DESCRIBE_CLUSTER, version, True, b"\0" + endpoints + fenced + _NO_TAGS)


def describe_quorum_call() -> Call:
    """Ask for the active controller. Since 3.0, with KRaft."""
    partition = flexible_array([_INT32.pack(0) + _NO_TAGS])
    body = flexible_array([flexible_string(_METADATA_TOPIC) + partition + _NO_TAGS]) + _NO_TAGS
    return Call(Key.DESCRIBE_QUORUM, 0, True, body)


def list_reassignments_call(timeout_ms: int) -> Call:
    """Ask for all ongoing reassignments. Since 2.4."""
    body = _INT32.pack(timeout_ms) + _NULL + _NO_TAGS
    return Call(Key.LIST_PARTITION_REASSIGNMENTS, 0, True, body)


def alter_reassignments_call(
    timeout_ms: int, targets: Mapping[TopicPartition, Sequence[int] | None]
) -> Call:
    """Reassign partitions to these brokers; None cancels. Since 2.4."""
    topics = [
        flexible_string(topic)
        + flexible_array(
            _INT32.pack(partition) + _brokers(targets[TopicPartition(topic, partition)]) + _NO_TAGS
            for partition in partitions
        )
        + _NO_TAGS
        for topic, partitions in by_topic(targets).items()
    ]
    body = _INT32.pack(timeout_ms) + flexible_array(topics) + _NO_TAGS
    return Call(Key.ALTER_PARTITION_REASSIGNMENTS, 0, True, body)


def list_offsets_call(
    partitions: Iterable[TopicPartition],
    *,
    replica: int = CONSUMER_REPLICA,
    at: int = LATEST,
    isolation: int = READ_UNCOMMITTED,
    version: int = 2,
) -> Call:
    """Ask a broker for the start (EARLIEST) or end (LATEST) of partitions' logs. Since 0.11.

    For a consumer only the leader answers, and the end is the high watermark, or with
    READ_COMMITTED the last stable offset. For DEBUGGING_REPLICA any replica answers, with its own
    log end. ``version`` is one of LIST_OFFSETS_VERSIONS.
    """
    entry = _OFFSETS_ENTRY.pack if version < 4 else _pack_epoch_and_offset
    topics = [
        classic_string(topic) + classic_array([entry(index, at) for index in indexes])
        for topic, indexes in by_topic(partitions).items()
    ]
    body = _OFFSETS_HEAD.pack(replica, isolation) + classic_array(topics)
    return Call(Key.LIST_OFFSETS, version, False, body)


def _pack_epoch_and_offset(index: int, at: int) -> bytes:
    return _EPOCH_OFFSETS_ENTRY.pack(index, -1, at)


def leader_epoch_ends_call(epochs: Mapping[TopicPartition, int]) -> Call:
    """Ask a leader for the end offset of an epoch in each log, to find lost records. Since 2.3."""
    topics = [
        classic_string(topic)
        + classic_array(
            [
                _EPOCH_ENTRY.pack(index, -1, epochs[TopicPartition(topic, index)])
                for index in indexes
            ]
        )
        for topic, indexes in by_topic(epochs).items()
    ]
    body = _INT32.pack(CONSUMER_REPLICA) + classic_array(topics)
    return Call(Key.OFFSET_FOR_LEADER_EPOCH, 3, False, body)


def fetch_call(
    topic: str, positions: Mapping[int, int], *, wait_ms: int, most_bytes: int, partition_bytes: int
) -> Call:
    """Ask a leader for records of a topic's partitions, each from an offset. Since 0.11.

    Records of open and aborted transactions are included. The answer has about ``most_bytes``, in
    the order of the partitions, with at most ``partition_bytes`` bytes of each; a first batch that is larger
    comes whole. The broker waits ``wait_ms`` for a first record.
    """
    partitions = [
        _FETCH_ENTRY.pack(number, at, partition_bytes) for number, at in positions.items()
    ]
    head = _FETCH_HEAD.pack(CONSUMER_REPLICA, wait_ms, 1, most_bytes, READ_UNCOMMITTED)
    body = classic_array([classic_string(topic) + classic_array(partitions)])
    return Call(Key.FETCH, 4, False, head + body)


def describe_log_dirs_call(partitions: Iterable[TopicPartition], version: int) -> Call:
    """Ask a broker for the sizes of its logs of partitions. Version 2: since 2.6; 4: since 3.3.

    From version 4 on the answer has the disks' total and usable bytes.
    """
    topics = [
        flexible_string(topic)
        + flexible_array([_INT32.pack(index) for index in indexes])
        + _NO_TAGS
        for topic, indexes in by_topic(partitions).items()
    ]
    return Call(Key.DESCRIBE_LOG_DIRS, version, True, flexible_array(topics) + _NO_TAGS)


def describe_partitions_call(
    topics: Iterable[str], first: TopicPartition, most: int = PAGE_PARTITIONS
) -> Call:
    """Ask for at most ``most`` partitions of topics, beginning with ``first``. Since 3.8."""
    names = flexible_array([flexible_string(topic) + _NO_TAGS for topic in topics])
    cursor = b"\1" + flexible_string(first.topic) + _INT32.pack(first.partition) + _NO_TAGS
    body = names + _INT32.pack(min(most, PAGE_PARTITIONS)) + cursor + _NO_TAGS
    return Call(Key.DESCRIBE_TOPIC_PARTITIONS, 0, True, body)


def metadata_call(topics: Iterable[str] | None) -> Call:
    """Ask for the brokers and all partitions of topics (None: of all topics). Since 2.1."""
    names = None if topics is None else [classic_string(topic) for topic in topics]
    return Call(Key.METADATA, 7, False, classic_array(names) + b"\0")  # create none


def describe_configs_call(
    kind: ResourceType, resources: Iterable[str], names: Sequence[str]
) -> Call:
    """Ask for the named configs of topics, or of the broker that is asked. Since 1.1."""
    wanted = classic_array([classic_string(name) for name in names])
    entries = [bytes([kind]) + classic_string(resource) + wanted for resource in resources]
    return Call(Key.DESCRIBE_CONFIGS, 1, False, classic_array(entries) + b"\0")  # no synonyms


def list_topics_call() -> Call:
    """Ask for the names of all topics, without partitions. Since 4.1 (KIP-1142)."""
    body = flexible_array([bytes([ResourceType.TOPIC])]) + _NO_TAGS
    return Call(Key.LIST_CONFIG_RESOURCES, 1, True, body)


def find_coordinator_call(name: str, *, transactional: bool = False) -> Call:
    """Ask for the coordinator of a group, or of a ``transactional`` id. Since 2.0.

    Brokers create ``__consumer_offsets`` or ``__transaction_state`` if needed.
    """
    return Call(Key.FIND_COORDINATOR, 2, False, classic_string(name) + bytes([transactional]))


def describe_group_call(group: str) -> Call:
    """Ask a coordinator to describe a group, with the operations that we are allowed. Since 2.3."""
    body = classic_array([classic_string(group)]) + b"\1"  # authorized operations, too
    return Call(Key.DESCRIBE_GROUPS, 3, False, body)


def describe_streams_group_call(group: str) -> Call:
    """Ask a coordinator to describe a streams group, with its assignor (KIP-1357). Since 4.4."""
    # Neither operations nor the topology's description.
    body = flexible_array([flexible_string(group)]) + b"\0" + b"\0" + _NO_TAGS
    return Call(Key.STREAMS_GROUP_DESCRIBE, 1, True, body)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic; topics and partitions are sorted."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def flexible_string(text: str) -> bytes:
    """Encode a string for a flexible request."""
    raw = text.encode()
    return _uvarint(len(raw) + 1) + raw


def flexible_array(elements: Iterable[bytes]) -> bytes:
    """Encode an array for a flexible request."""
    written = list(elements)
    return _uvarint(len(written) + 1) + b"".join(written)


def _brokers(brokers: Sequence[int] | None) -> bytes:
    return _NULL if brokers is None else flexible_array(map(_INT32.pack, brokers))


def classic_string(text: str) -> bytes:
    """Encode a string for a request that is not flexible."""
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def classic_array(elements: Sequence[bytes] | None) -> bytes:
    """Encode an array for a request that is not flexible; None is null."""
    if elements is None:
        return _INT32.pack(-1)
    return _INT32.pack(len(elements)) + b"".join(elements)
