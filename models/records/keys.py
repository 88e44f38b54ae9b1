"""The keys of records: of a group, a partition, or a copy of a task."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.errors import CaughtupError
from caughtup.models.ids import CopyKey, TaskId, TopicPartition
from caughtup.models.records.decoding import BAD_KEY, RefusedError, require_bounded
from caughtup.models.records.fields import (
    MOST_APPLICATION_CHARACTERS,
    MOST_PROCESS_CHARACTERS,
    MOST_TOPIC_CHARACTERS,
    AnyGroup,
    Epoch,
    Group,
    Long,
    Partition,
    Process,
    Task,
    Topic,
)

T = TypeVar("T")
#: The greatest size of a key: escaping in JSON can multiply the longest group name by six.
MOST_KEY_BYTES = 256 << 10
_MOST_PARTITION = 2**31 - 1
_TOPIC = re.compile(rf"[a-zA-Z0-9._-]{{1,{MOST_TOPIC_CHARACTERS}}}")

#: The types of keys: text, or JSON arrays.
GroupKey = Group
PartitionKey = Annotated[
    str,
    msgspec.Meta(pattern=rf"^[a-zA-Z0-9._-]{{1,{MOST_TOPIC_CHARACTERS}}}-(0|[1-9][0-9]{{0,9}})$"),
]
CopyArray = tuple[Group, Process, Task]
PartitionArray = tuple[Topic, Partition]
PartitionLineArray = tuple[AnyGroup, Topic, Partition]
ProducerArray = tuple[Long, Epoch]

_encode = msgspec.json.encode
_decode_copy = msgspec.json.Decoder(tuple[Group, Process, str]).decode
_decode_copy_or_partition = msgspec.json.Decoder(list[str | int]).decode
_decode_producer = msgspec.json.Decoder(ProducerArray).decode
_decode_line = msgspec.json.Decoder(tuple[AnyGroup, str, str | Partition]).decode


def is_topic(name: str) -> bool:
    """Return whether this is a valid name of a topic."""
    return _TOPIC.fullmatch(name) is not None


def encode_group(group: str) -> bytes:
    """Return a group's key."""
    return group.encode()


def decode_group(key: bytes | None) -> str:
    """Return the group, or the stream, of a key. Raises RefusedError."""
    return _name(_text(key), MOST_APPLICATION_CHARACTERS)


def encode_partition(partition: TopicPartition) -> bytes:
    """Return a partition's key: ``orders-3``."""
    return str(partition).encode()


def decode_partition(key: bytes | None) -> TopicPartition:
    """Return the partition of a key. Raises RefusedError."""
    text = _text(key)
    topic, _, number = text.rpartition("-")
    if not (number.isascii() and number.isdigit() and len(number) <= 10):
        raise RefusedError(BAD_KEY, f"{text!r:.80} is not a topic-partition such as orders-3")
    partition = _partition(topic, int(number))
    if str(partition) != text:
        raise RefusedError(BAD_KEY, f"{text!r:.80} must be written as {partition}")
    return partition


def encode_copy(group: str, process: str, task: str) -> bytes:
    """Return the key of a copy of a task: ``["orders","4e9bd3eb-…","0_3"]``."""
    return _encode([group, process, task])


def decode_copy(key: bytes | None) -> tuple[str, CopyKey]:
    """Return the group and the copy of a key. Raises RefusedError."""
    group, process, task = _array(key, _decode_copy)
    return group, CopyKey(process, _task(task))


def encode_partition_array(partition: TopicPartition) -> bytes:
    """Return a partition's key on a topic that has keys of copies, too: ``["orders",3]``."""
    return _encode([partition.topic, partition.partition])


def decode_copy_or_partition(key: bytes | None) -> tuple[str, CopyKey] | TopicPartition:
    """Return the group and copy, or the partition, of a key. Raises RefusedError."""
    match _array(key, _decode_copy_or_partition):
        case [str(group), str(process), str(task)]:
            copy = CopyKey(_name(process, MOST_PROCESS_CHARACTERS), _task(task))
            return _name(group, MOST_APPLICATION_CHARACTERS), copy
        case [str(topic), int(partition)]:
            return _partition(topic, partition)
    raise RefusedError(BAD_KEY, "neither the key of a copy nor of a partition")


def encode_line(group: str, first: str, second: str | int) -> bytes:
    """Return the key of a line of the lag table: a group's partition, or a copy of a task."""
    return _encode([group, first, second])


def decode_line(key: bytes | None) -> str:
    """Return the group of the key of a line of the lag table. Raises RefusedError."""
    group, _, _ = _array(key, _decode_line)
    return str(group)


def encode_producer(producer_id: int, epoch: int) -> bytes:
    """Return a producer's key: ``[4000,3]``."""
    return _encode([producer_id, epoch])


def decode_producer(key: bytes | None) -> tuple[int, int]:
    """Return the id and the epoch of a producer's key. Raises RefusedError."""
    producer_id, epoch = _array(key, _decode_producer)
    return producer_id, epoch


def _array(key: bytes | None, decode: Callable[[bytes], T]) -> T:
    if not key:
        raise RefusedError(BAD_KEY, "a record without a key")
    try:
        require_bounded(key, MOST_KEY_BYTES)
        return decode(key)
    except (msgspec.DecodeError, UnicodeDecodeError, RefusedError) as error:
        raise RefusedError(BAD_KEY, str(error)) from None


def _text(key: bytes | None) -> str:
    if not key:
        raise RefusedError(BAD_KEY, "a record without a key")
    if len(key) > MOST_KEY_BYTES:
        raise RefusedError(BAD_KEY, f"{len(key):,} bytes, more than {MOST_KEY_BYTES:,}")
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise RefusedError(BAD_KEY, str(error)) from None


def _task(text: str) -> TaskId:
    try:
        task = TaskId.parse(text)
    except CaughtupError as error:
        raise RefusedError(BAD_KEY, error.message[:80]) from None
    if str(task) != text:
        raise RefusedError(BAD_KEY, f"{text!r:.80} must be written as {task}")
    return task


def _name(text: str, most: int) -> str:
    if not 0 < len(text) <= most:
        raise RefusedError(BAD_KEY, f"a name of {len(text):,} characters, not of 1 to {most:,}")
    return text


def _partition(topic: str, number: int) -> TopicPartition:
    if _TOPIC.fullmatch(topic) is None:
        raise RefusedError(BAD_KEY, f"{topic!r:.80} is not a valid topic name")
    if not 0 <= number <= _MOST_PARTITION:
        raise RefusedError(BAD_KEY, f"no topic has a partition {number}")
    return TopicPartition(topic, number)
