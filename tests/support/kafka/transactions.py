"""Transactions of a real cluster, whose markers are written after producers' calls return."""

from __future__ import annotations

import uuid

from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
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
