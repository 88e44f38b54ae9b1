"""Encoders of what Kafka Streams put into a group's metadata in any version, 1 to 11."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET
from caughtup.models.wire.user_data import AssignmentInfo, HostInfo, SubscriptionInfo
from tests.support import wire
from tests.support.wire import array, byte_string, modified_utf, number


def subscription_info(value: SubscriptionInfo) -> bytes:
    if value.version >= 7:
        return wire.subscription_info(value)
    active = [task for task, s in value.offset_sums.items() if s == LATEST_OFFSET]
    others = [task for task, s in value.offset_sums.items() if s != LATEST_OFFSET]
    return b"".join(
        (
            number("i", value.version),
            number("i", value.latest_supported_version) if value.version >= 3 else b"",
            struct.pack(">qq", *value.process_id),
            array(map(task_id, active)),
            array(map(task_id, others)),
            byte_string(value.user_end_point.encode()) if value.version >= 2 else b"",
        )
    )


def assignment_info(value: AssignmentInfo) -> bytes:
    if value.version >= 7:
        return wire.assignment_info(value)
    hosts = (value.active_by_host, value.standby_by_host)
    names = sorted({p.topic for by_host in hosts for ps in by_host.values() for p in ps})
    dictionary = array(number("i", index) + modified_utf(t) for index, t in enumerate(names))

    def partitions_of(host: HostInfo, partitions: tuple[TopicPartition, ...]) -> bytes:
        indexed = (struct.pack(">ii", names.index(p.topic), p.partition) for p in partitions)
        written = array(indexed) if value.version >= 5 else named_partitions(partitions)
        return modified_utf(host.host) + number("i", host.port) + written

    active, standby = (array(partitions_of(*entry) for entry in h.items()) for h in hosts)
    return b"".join(
        (
            number("i", value.version),
            number("i", value.commonly_supported_version) if value.version >= 3 else b"",
            array(map(task_id, value.active)),
            array(task_id(task) + named_partitions(ps) for task, ps in value.standby.items()),
            dictionary if value.version >= 5 else b"",
            active if value.version >= 2 else b"",
            standby if value.version >= 6 else b"",
            number("i", value.error_code) if value.version >= 4 else b"",
        )
    )


def task_id(task: TaskId) -> bytes:
    return struct.pack(">ii", *task)


def named_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    return array(modified_utf(p.topic) + number("i", p.partition) for p in partitions)
