"""Transactions of a real cluster, whose markers are written after producers' calls return."""

from __future__ import annotations

import asyncio
import struct
import uuid

from aiokafka.record.util import calc_crc32c
from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.protocol import transactions as wire
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.requests import Call, classic_string
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models import ids
from caughtup.models.transactions.holders import ProducerState
from caughtup.models.wire.reader import Reader
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.support.record_batches import LoggedRecord, record_batch
from tests.support.service import wait_for


def transactional(cluster: EmbeddedCluster) -> Producer:
    """Return a producer whose transactions begin after all earlier records."""
    producer = Producer({**cluster.client_config(), "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    return producer


def commit_in_transaction(producer: Producer, group: str, offsets: list[TopicPartition]) -> None:
    """Commit a group's offsets in a new transaction, and leave it open."""
    producer.begin_transaction()
    metadata = Consumer({"group.id": group}).consumer_group_metadata()
    producer.send_offsets_to_transaction(offsets, metadata, 30)


def wait_markers(cluster: EmbeddedCluster, *partitions: TopicPartition) -> None:
    """Wait until no transaction is open on the partitions or the offsets topic."""
    admin = AdminClient(cluster.client_config())
    wait_for("the transaction's markers", lambda: _is_decided(admin, partitions))


def _is_decided(admin: AdminClient, partitions: tuple[TopicPartition, ...]) -> bool:
    numbers = admin.list_topics(CONSUMER_OFFSETS, 30).topics[CONSUMER_OFFSETS].partitions
    offsets = [TopicPartition(CONSUMER_OFFSETS, number) for number in numbers]
    asked = {one: OffsetSpec.latest() for one in (*offsets, *partitions)}
    stable, ends = (
        [one.result(30).offset for one in admin.list_offsets(asked, isolation_level=i).values()]
        for i in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    )
    return stable == ends


#: Brokers with this take a producer's write after its transaction's end, as those of 3.x did.
UNVERIFIED = {"transaction.partition.verification.enable": "false"}
_PRODUCE = 0
_BATCH_EPOCH, _BATCH_CHECKSUM, _BATCH_CHECKED = 51, 17, 21


def write_after_end(
    cluster: EmbeddedCluster, partition: TopicPartition, transactional_id: str, count: int = 3
) -> tuple[int, int]:
    """Leave a transaction hanging: its producer's records arrive after its transaction's end.

    Returns the producer's id, and the offset of the first record that hangs. The cluster has to be
    ``UNVERIFIED``, and the transactional id new.
    """
    producer = Producer({**cluster.client_config(), "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(partition.topic, b"first", partition=partition.partition)
    producer.flush(30)
    place = ids.TopicPartition(partition.topic, partition.partition)

    async def write() -> tuple[int, int]:
        async with ClusterProtocol({"bootstrap_servers": cluster.bootstrap_servers}) as protocol:
            leader = (await protocol.describe_partitions([place])).partitions[place].leader
            assert leader is not None
            call = wire.describe_producers_call([place])

            async def open_ones() -> list[ProducerState]:
                found = wire.decode_producers(await protocol.connections.ask(leader, call))
                return found.open[place]

            mine = max(await open_ones(), key=lambda state: state.first_offset)
            await asyncio.to_thread(producer.abort_transaction, 30)
            while mine in await open_ones():  # noqa: ASYNC110 - until its marker is written
                await asyncio.sleep(0.01)
            late = _late_records(partition, transactional_id, mine, count)
            answer = Reader(await protocol.connections.ask(leader, late))
        answer.int32(), answer.string(), answer.int32(), answer.int32()
        assert answer.int16() == 0, "the late records are refused"
        return mine.producer_id, answer.int64()

    return asyncio.run(write())


def _late_records(
    partition: TopicPartition, transactional_id: str, producer: ProducerState, count: int
) -> Call:
    """Produce records of a transactional producer that has written one record so far."""
    written = bytearray(
        record_batch(
            [LoggedRecord(number, None, b"late", now_ms()) for number in range(count)],
            producer_id=producer.producer_id,
            transactional=True,
        )
    )
    struct.pack_into(">hi", written, _BATCH_EPOCH, producer.producer_epoch, 1)
    checksum = calc_crc32c(bytes(written[_BATCH_CHECKED:]))
    struct.pack_into(">I", written, _BATCH_CHECKSUM, checksum)
    body = (
        classic_string(transactional_id)
        + struct.pack(">hii", -1, 30_000, 1)
        + classic_string(partition.topic)
        + struct.pack(">iii", 1, partition.partition, len(written))
        + bytes(written)
    )
    return Call(_PRODUCE, 3, False, body)  # type: ignore[arg-type]
