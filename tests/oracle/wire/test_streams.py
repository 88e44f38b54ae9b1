"""What the published Kafka Streams and consumer jars put into a group's metadata, read here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from hypothesis import given

from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.wire.group_metadata import decode_assignment, decode_subscription
from caughtup.models.wire.user_data import (
    HostInfo,
    decode_assignment_info,
    decode_subscription_info,
)
from tests.models.wire import strategies
from tests.models.wire.strategies import thorough


def java_list(jvm: Any, elements: Iterable[Any]) -> Any:
    made = jvm.java.util.ArrayList()
    for element in elements:
        made.add(element)
    return made


def java_map(jvm: Any, entries: Iterable[tuple[Any, Any]]) -> Any:
    made = jvm.java.util.LinkedHashMap()
    for key, value in entries:
        made.put(key, value)
    return made


def java_map_of_longs(jvm: Any, entries: Iterable[tuple[Any, int]]) -> Any:
    """A map with Long values: py4j would make Integers of the small ones."""
    made = jvm.java.util.LinkedHashMap()
    classes, arrays = jvm.java.lang.Class, jvm.java.lang.reflect.Array
    any_object = classes.forName("java.lang.Object")
    parameters = arrays.newInstance(classes.forName("java.lang.Class"), 2)
    parameters[0] = parameters[1] = any_object
    put = made.getClass().getMethod("put", parameters)
    for key, value in entries:
        boxed = arrays.newInstance(classes.forName("java.lang.Long"), 1)
        boxed[0] = value
        arguments = arrays.newInstance(any_object, 2)
        arguments[0] = key
        jvm.java.lang.System.arraycopy(boxed, 0, arguments, 1, 1)
        put.invoke(made, arguments)
    return made


def task_id(jvm: Any, task: TaskId) -> Any:
    return jvm.org.apache.kafka.streams.processor.TaskId(*task)


def java_partitions(jvm: Any, partitions: Iterable[TopicPartition]) -> Any:
    made = jvm.org.apache.kafka.common.TopicPartition
    return java_list(jvm, (made(*partition) for partition in partitions))


def partition_set(jvm: Any, partitions: Iterable[TopicPartition]) -> Any:
    return jvm.java.util.LinkedHashSet(java_partitions(jvm, partitions))


def buffer(jvm: Any, raw: bytes | None) -> Any:
    return None if raw is None else jvm.java.nio.ByteBuffer.wrap(raw)


def encoded(jvm: Any, written: Any) -> bytes:
    raw = jvm.org.apache.kafka.common.protocol.MessageUtil.byteBufferToArray(written)
    assert isinstance(raw, bytes)
    return raw


@thorough
@given(strategies.subscriptions())
def test_subscriptions_are_read_as_the_consumer_writes_them(jvm, subscription):
    assignor = jvm.org.apache.kafka.clients.consumer.ConsumerPartitionAssignor
    written = assignor.Subscription(
        java_list(jvm, subscription.topics),
        buffer(jvm, subscription.user_data),
        java_partitions(jvm, subscription.owned),
        subscription.generation,
        jvm.java.util.Optional.ofNullable(subscription.rack),
    )
    protocol = jvm.org.apache.kafka.clients.consumer.internals.ConsumerProtocol
    raw = encoded(jvm, protocol.serializeSubscription(written, subscription.version))
    # The consumer sorts topics before it writes them.
    expected = dataclasses.replace(subscription, topics=tuple(sorted(subscription.topics)))
    assert decode_subscription(raw) == expected


@thorough
@given(strategies.assignments)
def test_assignments_are_read_as_the_consumer_writes_them(jvm, assignment):
    assignor = jvm.org.apache.kafka.clients.consumer.ConsumerPartitionAssignor
    written = assignor.Assignment(
        java_partitions(jvm, assignment.partitions), buffer(jvm, assignment.user_data)
    )
    protocol = jvm.org.apache.kafka.clients.consumer.internals.ConsumerProtocol
    raw = encoded(jvm, protocol.serializeAssignment(written, assignment.version))
    read = decode_assignment(raw)
    assert dataclasses.replace(read, partitions=tuple(sorted(read.partitions))) == assignment


@thorough
@given(strategies.subscription_infos())
def test_members_user_data_is_read_as_kafka_streams_writes_it(jvm, info):
    processor = jvm.org.apache.kafka.streams.processor
    written = processor.internals.assignment.SubscriptionInfo(
        info.version,
        info.latest_supported_version,
        processor.assignment.ProcessId(jvm.java.util.UUID(*info.process_id)),
        info.user_end_point or None,
        java_map_of_longs(jvm, ((task_id(jvm, t), s) for t, s in info.offset_sums.items())),
        info.unique_field,
        info.error_code,
        java_map(jvm, info.client_tags.items()),
    )
    assert decode_subscription_info(encoded(jvm, written.encode())) == info


@thorough
@given(strategies.assignment_infos())
def test_members_assignments_are_read_as_kafka_streams_writes_them(jvm, info):
    def by_host(hosts: dict[HostInfo, tuple[TopicPartition, ...]]) -> Any:
        host_info = jvm.org.apache.kafka.streams.state.HostInfo
        return java_map(jvm, ((host_info(*h), partition_set(jvm, p)) for h, p in hosts.items()))

    written = jvm.org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo(
        info.version,
        info.commonly_supported_version,
        java_list(jvm, (task_id(jvm, task) for task in info.active)),
        java_map(jvm, ((task_id(jvm, t), partition_set(jvm, p)) for t, p in info.standby.items())),
        by_host(info.active_by_host),
        by_host(info.standby_by_host),
        info.error_code,
    )
    if info.next_rebalance_ms is not None:
        written.setNextRebalanceTime(info.next_rebalance_ms)
    assert decode_assignment_info(encoded(jvm, written.encode())) == info
