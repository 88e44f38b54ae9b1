"""What the service writes with, beside real brokers: topics that are made anew on another broker."""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import suppress

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics import publisher as module
from caughtup.agents.topics.publisher import Publisher
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.ids import TopicPartition
from tests.support.service import wait_for


def wait_for_leader(admin: AdminClient, topic: str, broker: int) -> None:
    """Wait until a topic's one partition is led by a broker, as far as clients are told."""

    def leads() -> bool:
        found = admin.list_topics(topic, timeout=10).topics[topic].partitions
        return 0 in found and found[0].leader == broker

    wait_for(f"broker {broker} leads {topic}", leads)


def create(admin: AdminClient, topic: str, broker: int) -> None:
    """Make a topic on a broker as soon as it may be: the one before it is being deleted."""
    until = time.monotonic() + 30
    while True:
        new = NewTopic(topic, num_partitions=1, replica_assignment=[[broker]])
        try:
            admin.create_topics([new])[topic].result(30)
        except KafkaException:
            if time.monotonic() > until:
                raise
        else:
            return


@pytest.mark.parametrize("told", [True, False], ids=["told", "found out"])
async def test_a_topic_made_anew_on_another_broker_is_written_again(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """The leader of the first has an epoch that the second one's is below."""
    monkeypatch.setitem(module._CONFIG, "message.timeout.ms", 1_500)
    monkeypatch.setattr(module, "_STUCK_SECONDS", 2.0)
    prefix = f"own-{uuid.uuid4().hex[:8]}-"
    name, other = f"{prefix}lag", f"{prefix}end-offsets"
    admin = AdminClient(cluster.client_config())
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers, topic_prefix=prefix)
    create(admin, name, 1)
    create(admin, other, 1)
    move = reassigner(cluster.bootstrap_servers)
    for broker in (2, 1, 2):
        await asyncio.to_thread(move, TopicPartition(name, 0), [broker])
        await asyncio.to_thread(wait_for_leader, admin, name, broker)
    async with Publisher(settings, Health(), lambda: True) as publisher:

        async def takes(topic: str) -> bool:
            sent = await publisher.topic(topic).send(key=b"k", value=b"v")
            with suppress(KafkaException):
                await sent
                return True
            return False

        async def until_taken(topic: str) -> None:
            """Write until a broker takes it: on a busy machine one may not do so in time."""
            until = time.monotonic() + 30
            while not await takes(topic):
                assert time.monotonic() < until

        await until_taken("lag")
        admin.delete_topics([name])[name].result(30)
        await asyncio.to_thread(create, admin, name, 1)
        await asyncio.to_thread(wait_for_leader, admin, name, 1)
        if told:
            publisher.replace_client()
        until = time.monotonic() + 60
        while not await takes("lag"):
            assert time.monotonic() < until
            await until_taken("end-offsets")
    for topic in admin.delete_topics([name, other]).values():
        topic.result(30)
