"""Encoders of the user data of Kafka Streams' members and leaders.

Followers in Python write it, so that a reader of Kafka Streams groups can read their groups.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LONG_MAX

#: The version that is written, that of Kafka Streams 4.3.
VERSION = 11

_HEAD = struct.Struct(">iiqq")  # version, latest supported version, process id
_TASK_OFFSET_SUM = struct.Struct(">iiqh")  # subtopology, partition, sum, no topology name
_SUBSCRIPTION_TAIL = struct.Struct(">bii")  # unique field, error code, no client tags
_VERSIONS = struct.Struct(">ii")
_TASK = struct.Struct(">iii")  # subtopology, partition, no topology name
_ASSIGNMENT_TAIL = struct.Struct(">iiiiq")  # no topics, no hosts twice, no error, next rebalance
_COUNT = struct.Struct(">i")
_NO_NAME = -1


def encode_subscription_info(
    process: ProcessId, offset_sums: Mapping[TaskId, int], unique_field: int
) -> bytes:
    """Encode a member's user data: its process, and an offset sum or sentinel of each of its tasks.

    Only the lowest eight bits of ``unique_field`` are written; the coordinator rebalances when a
    member joins with other bytes than before, so it changes with every join. Source: Kafka Streams'
    ``SubscriptionInfoData``, version 11.
    """
    unique = (unique_field + 128) % 256 - 128
    sums = (
        _TASK_OFFSET_SUM.pack(*task, offset_sum, _NO_NAME)
        for task, offset_sum in sorted(offset_sums.items())
    )
    return b"".join(
        (
            _HEAD.pack(VERSION, VERSION, *process),
            _COUNT.pack(0),  # no application.server
            _array(sums),
            _SUBSCRIPTION_TAIL.pack(unique, 0, 0),
        )
    )


def encode_assignment_info(
    active: Iterable[TaskId],
    standby: Mapping[TaskId, Iterable[TopicPartition]],
    next_rebalance_ms: int | None,
) -> bytes:
    """Encode a member's assignment: its tasks, and when it shall request the next rebalance.

    ``active`` is in the order of the member's partitions, ``standby`` has the source partitions of
    each task; ``next_rebalance_ms`` is 0 for at once and None for never. Source: Kafka Streams'
    ``AssignmentInfo``, version 11.
    """
    return b"".join(
        (
            _VERSIONS.pack(VERSION, VERSION),
            _array(_TASK.pack(*task, 0) for task in active),
            _array(
                _TASK.pack(*task, 0) + _array(_partition(one) for one in partitions)
                for task, partitions in sorted(standby.items())
            ),
            _ASSIGNMENT_TAIL.pack(
                0, 0, 0, 0, LONG_MAX if next_rebalance_ms is None else next_rebalance_ms
            ),
        )
    )


def _partition(one: TopicPartition) -> bytes:
    # Kafka's topic names are ASCII, for which Java's modified UTF-8 equals UTF-8.
    name = one.topic.encode("ascii")
    return struct.pack(">H", len(name)) + name + _COUNT.pack(one.partition)


def _array(elements: Iterable[bytes]) -> bytes:
    written = list(elements)
    return _COUNT.pack(len(written)) + b"".join(written)
