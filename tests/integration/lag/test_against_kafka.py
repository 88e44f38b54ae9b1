"""Two hundred groups of every kind under load: our lag is what the brokers themselves say."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.conftest import MakeTopic
from tests.support.kafka.background import in_background
from tests.support.service import caughtup, wait_for

pytestmark = pytest.mark.thorough

WITHOUT_MEMBERS, CLASSIC, NEW_PROTOCOL = 160, 20, 20
PARTITIONS = 6
#: Of a group's partition: what was committed, the log's end, and how far apart they are.
Figures = tuple[int, int, int]


def test_the_lag_of_two_hundred_groups_is_what_the_brokers_say(
    cluster: EmbeddedCluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    prefix = f"many-{uuid.uuid4().hex[:8]}"
    topics = [make_topic(partitions=PARTITIONS) for _ in range(3)]
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    reading_groups: set[str] = set()
    with ExitStack() as members:
        with load(cluster, topics):
            commit_without_members(cluster, prefix, topics, random.Random(seed))
            for number in range(CLASSIC + NEW_PROTOCOL):
                protocol = "classic" if number < CLASSIC else "consumer"
                group = f"{prefix}-{protocol}-{number}"
                members.enter_context(reading(cluster, group, topics[number % 3], protocol))
                reading_groups.add(group)
        theirs = kafkas_figures(cluster, prefix)
        ours = our_figures(cluster, prefix, tmp_path)
    groups = {group for group, _, _ in theirs}
    assert reading_groups <= groups
    assert len(groups) == WITHOUT_MEMBERS + CLASSIC + NEW_PROTOCOL
    assert ours == theirs


def our_figures(
    cluster: EmbeddedCluster, prefix: str, directory: Path
) -> dict[tuple[str, str, int], Figures]:
    arguments = ["--bootstrap-servers", cluster.bootstrap_servers, "--format", "json"]
    return {
        (line["group"], line["topic"], line["partition"]): (
            line["committed"],
            line["end_offset"],
            line["lag_committed_view"],
        )
        for line in caughtup("lag", *arguments, directory=directory).lines
        if line["kind"] == "partition" and line["group"].startswith(prefix) and line["has_commit"]
    }


def commit_without_members(
    cluster: EmbeddedCluster, prefix: str, topics: list[str], draw: random.Random
) -> None:
    admin = AdminClient(cluster.client_config())
    for number in range(WITHOUT_MEMBERS):
        topic = draw.choice(topics)
        partitions = draw.sample(range(PARTITIONS), draw.randint(1, PARTITIONS))
        offsets = [TopicPartition(topic, p, draw.randint(0, 50)) for p in partitions]
        wanted = ConsumerGroupTopicPartitions(f"{prefix}-empty-{number}", offsets)

        def is_altered(wanted: ConsumerGroupTopicPartitions = wanted) -> bool:
            # A coordinator that still loads its partition refuses each offset by itself.
            (future,) = admin.alter_consumer_group_offsets([wanted]).values()
            return all(at.error is None for at in future.result(30).topic_partitions)

        wait_for(f"the offsets of {wanted.group_id}", is_altered)


@contextmanager
def load(cluster: EmbeddedCluster, topics: list[str]) -> Iterator[None]:
    """Write to every partition all the while, a part of it in transactions."""

    def write(over: threading.Event) -> None:
        plain = Producer(cluster.client_config())
        transactional = Producer({**cluster.client_config(), "transactional.id": uuid.uuid4().hex})
        transactional.init_transactions(30)
        for number in range(1 << 30):
            for producer in (plain, transactional):
                if producer is transactional:
                    producer.begin_transaction()
                for topic in topics:
                    for partition in range(PARTITIONS):
                        producer.produce(topic, b"record", partition=partition)
                producer.flush(30)
            if number % 2:
                transactional.commit_transaction(30)
            else:
                transactional.abort_transaction(30)
            if over.wait(0.02):
                return

    with in_background(write):
        yield


@contextmanager
def reading(cluster: EmbeddedCluster, group: str, topic: str, protocol: str) -> Iterator[None]:
    """Read and commit as a member of a group, which it stays until the end."""
    consumer = Consumer(
        {
            **cluster.client_config(),
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])

    def has_committed() -> bool:
        if all(message.error() for message in consumer.consume(20, timeout=0.2)):
            return False
        committed = consumer.commit(asynchronous=False)
        return bool(committed) and all(at.error is None for at in committed)

    wait_for(f"{group} to read", has_committed)
    yield
    consumer.close()


def kafkas_figures(cluster: EmbeddedCluster, prefix: str) -> dict[tuple[str, str, int], Figures]:
    """Ask the brokers, as ``kafka-consumer-groups`` does: coordinators for commits, leaders for ends."""
    admin = AdminClient(cluster.client_config())
    groups = [group.group_id for group in admin.list_consumer_groups().result(30).valid]
    committed: dict[tuple[str, str, int], int] = {}
    for group in groups:
        if group.startswith(prefix):
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
            for at in asked[group].result(30).topic_partitions:
                committed[group, at.topic, at.partition] = at.offset
    wanted = {TopicPartition(topic, partition) for _, topic, partition in committed}
    listed = admin.list_offsets(
        dict.fromkeys(wanted, OffsetSpec.latest()), isolation_level=IsolationLevel.READ_UNCOMMITTED
    )
    ends = {(at.topic, at.partition): asked.result(30).offset for at, asked in listed.items()}
    return {
        key: (offset, ends[key[1:]], ends[key[1:]] - offset) for key, offset in committed.items()
    }
