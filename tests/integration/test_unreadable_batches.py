"""Batches that no client decompresses: refused, and what is around them is read."""

from __future__ import annotations

from confluent_kafka import Producer

from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topic_log import read_if_allowed, read_own
from caughtup.demo.cluster import EmbeddedCluster
from tests.integration.conftest import MakeTopic
from tests.support.streams import cluster_state

#: Beyond what librdkafka decompresses of zstd (receive.message.max.bytes).
_BOMB = 300_000_000


def send(cluster: EmbeddedCluster, topic: str, codec: str, *values: bytes) -> None:
    """Write records, of those that fit all in one batch."""
    producer = Producer(
        {
            **cluster.client_config(),
            "compression.type": codec,
            "message.max.bytes": 1_000_000_000,
            "queue.buffering.max.kbytes": 2_097_151,
            "linger.ms": 200,
        }
    )
    failed = []
    for value in values:
        producer.produce(topic, value, b"k", on_delivery=lambda error, _: failed.append(error))
    producer.flush(60)
    assert failed == [None] * len(values)


def test_what_is_around_a_batch_that_cannot_be_decompressed_is_read(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic("bombed")
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers, topic_prefix="bombed-")
    name = topic.removeprefix("bombed-")
    send(cluster, topic, "none", b"first")
    send(cluster, topic, "zstd", b"0" * _BOMB)
    for number in range(9):
        send(cluster, topic, "gzip", b"%d" % number)
    state = cluster_state()
    found = [value for _, value in read_own(settings, state, name, Progress())]
    assert found == [b"first", *(b"%d" % number for number in range(9))]
    assert state.refused.counts == {(name, "bad_compression"): 1}
    send(cluster, topic, "zstd", b"0" * _BOMB)
    assert len(list(read_own(settings, state, name, Progress()))) == 10
    assert len(list(read_if_allowed(settings, name, Progress()))) == 10
