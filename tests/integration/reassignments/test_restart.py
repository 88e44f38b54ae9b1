"""The service follows a reassignment over its own restarts, and publishes what ended without it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.read_to_end import read_topic
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.throttle import set_throttle
from caughtup.models.ids import TopicPartition
from tests.support.service import Service, commit, wait_for

pytestmark = pytest.mark.thorough

PARTITION = TopicPartition("parcels", 0)
KEY = b"parcels-0"
#: A first fetch of 1 MiB takes no notice of the throttle.
RECORDS, RECORD_BYTES, THROTTLE = 300, 10_000, 1_000


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=2) as cluster:
        topic = NewTopic(PARTITION.topic, 1, replica_assignment=[[1]])
        admin = AdminClient(cluster.client_config())
        admin.create_topics([topic])[PARTITION.topic].result(30)
        producer = Producer({**cluster.client_config(), "acks": "all"})
        for _ in range(RECORDS):
            producer.produce(PARTITION.topic, os.urandom(RECORD_BYTES))
        assert producer.flush(60) == 0
        set_throttle(cluster, PARTITION.topic, THROTTLE)
        commit(cluster, "readers", PARTITION.topic, 0)  # makes __consumer_offsets
        yield cluster


def alter(cluster: EmbeddedCluster, replicas: list[int] | None) -> None:
    async def ask() -> None:
        config = aiokafka_config(Settings(bootstrap_servers=cluster.bootstrap_servers))
        async with ClusterProtocol(config) as protocol:
            await protocol.alter_reassignments({PARTITION: replicas})

    asyncio.run(ask())


def records(cluster: EmbeddedCluster, service: Service) -> list[dict[str, Any]]:
    """Read everything that was published of the partition."""
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers)
    topic = service.topic("reassignments")
    return [
        msgspec.json.decode(value)
        for key, value in read_topic(settings, topic, Progress())
        if key == KEY and value is not None
    ]


def test_a_reassignment_keeps_its_age_and_its_end_is_told_though_nobody_saw_it(
    brokers: EmbeddedCluster,
) -> None:
    with Service(brokers, reassignments_interval=0.2) as service:
        alter(brokers, [2])
        wait_for("it is known", lambda: service.page()["reassignments"])
        wait_for("looks are published", lambda: len(records(brokers, service)) > 3)
        service.stop()
        before = records(brokers, service)
        service.start()
        wait_for("it is known again", lambda: service.page()["reassignments"])
        wait_for("more looks", lambda: len(records(brokers, service)) > len(before) + 2)
        since = {record["since_ms"] for record in records(brokers, service)[len(before) :]}
        assert since == {before[0]["as_of_ms"]}
        (age,) = (s.value for s in service.metrics() if s.name.endswith("reassignment_age_seconds"))
        assert age > (before[-1]["as_of_ms"] - before[0]["as_of_ms"]) / 1000
        service.kill()
        alter(brokers, None)
        service.start()
        (ended,) = wait_for("its end is told", lambda: service.page()["recent_reassignments"])
        assert (ended["topic"], ended["outcome"]) == (PARTITION.topic, "cancelled")
        assert service.page()["reassignments"] == []
        last = records(brokers, service)[-1]
        assert last["ended"]
        assert last["replicas"] == last["isr"] == [1]
        # The end is followed by a tombstone: nothing of it is read back after that.
        service.stop()
        published = len(records(brokers, service))
        service.start()
        wait_for(
            "the probe looks", lambda: service.value("snapshot_age_seconds", source="reassignments")
        )
        assert service.page()["recent_reassignments"] == []
        assert len(records(brokers, service)) == published
