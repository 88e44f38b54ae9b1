"""Batches that no client decompresses: refused, and what is around them is read."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer

from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import SERVICE_TOPICS, create_topics, topic_name
from caughtup.agents.topics.read_to_end import read_if_allowed, read_service_topic
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.conftest import MakeTopic
from tests.support.states import cluster_state

#: Beyond what librdkafka decompresses of zstd (receive.message.max.bytes).
_BOMB = 300_000_000


def send(
    cluster: EmbeddedCluster, topic: str, codec: str, *values: bytes
) -> list[KafkaError | None]:
    """Write records, of those that fit all in one batch, and give what came of each."""
    producer = Producer(
        {
            **cluster.client_config(),
            "compression.type": codec,
            "message.max.bytes": 1_000_000_000,
            "queue.buffering.max.kbytes": 2_097_151,
            "linger.ms": 200,
        }
    )
    came_of: list[KafkaError | None] = []
    for value in values:
        producer.produce(topic, value, b"k", on_delivery=lambda error, _: came_of.append(error))
    producer.flush(60)
    assert len(came_of) == len(values)
    return came_of


@pytest.mark.heavy
def test_what_is_around_a_batch_that_cannot_be_decompressed_is_read(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic("bombed")
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers, topic_prefix="bombed-")
    name = topic.removeprefix("bombed-")
    send(cluster, topic, "none", b"first")
    assert send(cluster, topic, "zstd", b"0" * _BOMB) == [None]
    for number in range(9):
        send(cluster, topic, "gzip", b"%d" % number)
    state = cluster_state()
    found = [value for _, value in read_service_topic(settings, state, name, Progress())]
    assert found == [b"first", *(b"%d" % number for number in range(9))]
    assert state.refused.counts == {(name, "bad_compression"): 1}
    send(cluster, topic, "zstd", b"0" * _BOMB)
    assert len(list(read_service_topic(settings, state, name, Progress()))) == 10
    assert len(list(read_if_allowed(settings, name, Progress()))) == 10


def test_on_topics_of_ours_the_brokers_refuse_what_readers_would(cluster: EmbeddedCluster) -> None:
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers, topic_prefix="bounded-")
    assert len(
        create_topics(settings, [topic_name(settings, one.name) for one in SERVICE_TOPICS])
    ) == len(SERVICE_TOPICS)
    topic = "bounded-task-positions"
    (refused,) = send(cluster, topic, "gzip", b"0" * 20_000_000)
    assert refused is not None
    assert refused.code() == KafkaError.MSG_SIZE_TOO_LARGE
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert send(cluster, topic, codec, codec.encode() * 1_000) == [None]
    found = [value for _, value in read_if_allowed(settings, "task-positions", Progress())]
    assert len(found) == 5
