"""Requests about open transactions (KIP-664): encode them, and decode their answers.

Since 2.8 (DescribeProducers) and 3.0 (the others). Every ``decode_`` function raises DecodeError for
bytes that are no such answer. Source: the message definitions of Kafka's protocol.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from caughtup.agents.kafka.protocol.requests import (
    Call,
    Key,
    by_topic,
    classic_string,
    flexible_array,
    flexible_string,
)
from caughtup.models.ids import TopicPartition
from caughtup.models.transactions.holders import (
    DescribedTransaction,
    ListedTransaction,
    ProducerState,
)
from caughtup.models.wire.reader import FlexibleReader, Reader

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_NO_TAGS = b"\0"
#: A producer: id, epoch, last sequence, last timestamp, coordinator epoch, first offset.
_PRODUCER = struct.Struct(">qiiqiq")
#: A producer's id and epoch, and whether to commit.
_NOBODY = struct.Struct(">qh?")
_NO_TRANSACTION = -1


class Producers(NamedTuple):
    """The producers with an open transaction by partition, and the other partitions' error codes."""

    open: dict[TopicPartition, list[ProducerState]]
    errors: dict[TopicPartition, int]


def describe_producers_call(partitions: Iterable[TopicPartition]) -> Call:
    """Ask a leader for the producers of partitions. Since 2.8."""
    topics = [
        flexible_string(topic)
        + flexible_array(_INT32.pack(partition) for partition in numbers)
        + _NO_TAGS
        for topic, numbers in by_topic(partitions).items()
    ]
    return Call(Key.DESCRIBE_PRODUCERS, 0, True, flexible_array(topics) + _NO_TAGS)


def list_transactions_call(producer_ids: Iterable[int]) -> Call:
    """Ask a broker for the transactions that it coordinates, of these producer ids. Since 3.0."""
    ids = flexible_array(_INT64.pack(producer_id) for producer_id in sorted(producer_ids))
    return Call(Key.LIST_TRANSACTIONS, 0, True, flexible_array(()) + ids + _NO_TAGS)


def describe_transactions_call(transactional_ids: Iterable[str]) -> Call:
    """Ask a coordinator to describe transactions. Since 3.0."""
    ids = flexible_array(flexible_string(name) for name in sorted(transactional_ids))
    return Call(Key.DESCRIBE_TRANSACTIONS, 0, True, ids + _NO_TAGS)


def init_producer_id_call(transactional_id: str, timeout_ms: int) -> Call:
    """Ask a coordinator for a producer id and epoch: earlier producers of the id are fenced.

    Their open transaction is aborted. Since 2.0.
    """
    body = classic_string(transactional_id) + _INT32.pack(timeout_ms)
    return Call(Key.INIT_PRODUCER_ID, 1, False, body)


def decode_init_producer_id(data: bytes) -> int:
    """Decode the error code of the answer to InitProducerId v1. Raises DecodeError."""
    reader = Reader(data)
    reader.int32()  # throttle time
    code = reader.int16()
    reader.int64()  # the producer's id
    reader.int16()  # its epoch
    reader.expect_end()
    return code


def end_no_transaction_call(transactional_id: str) -> Call:
    """Ask a broker to abort a transaction of a producer that does not exist. Since 2.4.

    Whether we may write with the id is checked before anything else, and nothing is changed.
    """
    body = flexible_string(transactional_id) + _NOBODY.pack(-1, -1, False) + _NO_TAGS
    return Call(Key.END_TXN, 3, True, body)


def decode_ended(data: bytes) -> int:
    """Decode the answer to EndTxn v3: an error code."""
    reader = FlexibleReader(data)
    reader.int32()
    return reader.int16()


def decode_producers(data: bytes) -> Producers:
    """Decode the answer to DescribeProducers v0."""
    reader = FlexibleReader(data)
    reader.int32()
    found = Producers({}, {})
    for _ in range(reader.array_length(3)):
        topic = reader.string()
        for _ in range(reader.array_length(9)):
            partition = TopicPartition(topic, reader.int32())
            if code := reader.int16():
                found.errors[partition] = code
            reader.nullable_string()
            states = []
            for _ in range(reader.array_length(_PRODUCER.size + 1)):
                producer_id, epoch, _, written_ms, _, first_offset = reader.unpack(_PRODUCER)
                reader.tagged_fields()
                if first_offset != _NO_TRANSACTION:
                    states.append(ProducerState(producer_id, epoch, written_ms, first_offset))
            if not code:
                found.open[partition] = states
            reader.tagged_fields()
        reader.tagged_fields()
    return found


def decode_listed(data: bytes, broker: int) -> tuple[int, list[ListedTransaction]]:
    """Decode the answer to ListTransactions v0 of a broker: an error code, and the transactions."""
    reader = FlexibleReader(data)
    reader.int32()
    code = reader.int16()
    for _ in range(reader.array_length(1)):
        reader.string()
    found = []
    for _ in range(reader.array_length(11)):
        transactional_id, producer_id = reader.string(), reader.int64()
        found.append(ListedTransaction(transactional_id, producer_id, reader.string(), broker))
        reader.tagged_fields()
    return code, found


def decode_described(data: bytes) -> list[tuple[int, DescribedTransaction]]:
    """Decode the answer to DescribeTransactions v0: each with its error code."""
    reader = FlexibleReader(data)
    reader.int32()
    found = []
    for _ in range(reader.array_length(30)):
        code, transactional_id, state = reader.int16(), reader.string(), reader.string()
        timeout_ms, started_ms = reader.int32(), reader.int64()
        producer_id, epoch = reader.int64(), reader.int16()
        partitions = []
        for _ in range(reader.array_length(3)):
            topic = reader.string()
            partitions += [
                TopicPartition(topic, reader.int32()) for _ in range(reader.array_length(4))
            ]
            reader.tagged_fields()
        reader.tagged_fields()
        described = DescribedTransaction(
            transactional_id,
            state,
            timeout_ms,
            started_ms,
            producer_id,
            epoch,
            frozenset(partitions),
        )
        found.append((code, described))
    return found
