"""Records of transactions that an instance wrote which is gone are removed, and no others."""

from __future__ import annotations

import uuid

from confluent_kafka import Producer

from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import topic_name
from caughtup.agents.transactions import TransactionsProbe
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import changed
from caughtup.models.records.topics import TRANSACTIONS
from caughtup.models.records.transactions import FORMAT, TransactionRecord
from tests.support.states import cluster_state, open_transaction


class Sent:
    """Takes what is written, as a topic's writer does."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []

    async def send(self, *, key: bytes, value: bytes | None) -> None:
        self.records.append((key, value))


def record(producer: int, at_ms: int) -> TransactionRecord:
    one = changed(open_transaction("pay", [TopicPartition("paid", 0)]), producer_id=producer)
    return TransactionRecord(FORMAT.schema, at_ms, one)


async def test_what_is_not_written_again_is_removed(cluster: EmbeddedCluster) -> None:
    settings = Settings(
        bootstrap_servers=cluster.bootstrap_servers, topic_prefix=f"{uuid.uuid4().hex[:8]}-"
    )
    topic = topic_name(settings, TRANSACTIONS)
    create_topics(cluster, {topic: 1})
    producer = Producer(cluster.client_config())

    def write(*records: TransactionRecord) -> None:
        for one in records:
            producer.produce(topic, FORMAT.encode(one), one.key)
        assert producer.flush(30) == 0

    sent = Sent()
    probe = TransactionsProbe(settings, Health(), cluster_state(), sent, dict)  # type: ignore[arg-type]
    gone, there = record(1, 1_000), record(2, 1_000)
    write(gone, there)
    before = await probe.remove_unchanged({})
    assert sent.records == []
    write(record(2, 61_000), record(3, 61_000))
    before = await probe.remove_unchanged(before)
    assert sent.records == [(gone.key, None)]
    assert before == {(1, 1): 1_000, (2, 1): 61_000, (3, 1): 61_000}
