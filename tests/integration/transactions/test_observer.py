"""Who holds back a last stable offset, and which transactions hang: as Kafka's own tool says.

TRANSACTION_CASES partitions, each with a transaction drawn from a seed.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer, TopicPartition

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.clients import admin_client
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.end_offset_listing import EndOffsetLister, EndOffsetListing
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.probes.transactions import TIMEOUT_SECONDS, TransactionObserver
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.models import ids
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.transactions.table import Missing
from caughtup.pipelines.java.jars import KAFKA_VERSION, fetch_jars
from tests.support.kafka.transactions import UNVERIFIED, write_after_end
from tests.support.oracles import compiled_java, running_oracle

pytestmark = pytest.mark.heavy

CASES = int(os.environ.get("TRANSACTION_CASES", "12"))
#: So many healthy transactions that none of them may be said to hang.
HEALTHY = int(os.environ.get("HEALTHY_TRANSACTIONS", "60"))
SEED = 1_300
TOPIC, BUSY = "orders", "busy"
_SOURCE = Path(__file__).with_name("TransactionsOracle.java")

Row = dict[str, str]


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=2, broker_properties=UNVERIFIED) as cluster:
        create_topics(cluster, {TOPIC: CASES, BUSY: HEALTHY})
        yield cluster


@pytest.fixture(scope="module")
def tool(brokers: EmbeddedCluster) -> Iterator[Callable[..., list[Row]]]:
    """Kafka's own tool: its arguments in, the rows of its table out."""
    jars = sorted(
        fetch_jars("kafka-tools", [f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}"]).glob("*.jar")
    )
    classes = compiled_java([_SOURCE], *jars)
    with running_oracle("org.apache.kafka.tools.TransactionsOracle", classes, *jars) as oracle:

        def run(*arguments: str) -> list[Row]:
            question = {"servers": brokers.bootstrap_servers, "arguments": list(arguments)}
            rows: list[Row] = oracle.ask(question)["rows"]
            return rows

        yield run


class Case(NamedTuple):
    """A partition's transaction: its kind, and its transactional id."""

    kind: str
    name: str


class Cases:
    """The transactions of all partitions of the topic."""

    def __init__(self, cluster: EmbeddedCluster, seed: int) -> None:
        self._cluster, self._drawn = cluster, random.Random(seed)
        self.producers: list[Producer] = []
        self.drawn: dict[int, Case] = {}
        for partition in range(CASES):
            kind = self._drawn.choice(["open", "open", "long", "hanging", "hanging", "ended"])
            case = self.drawn[partition] = Case(kind, f"case-{seed}-{partition}")
            self._make(case, TopicPartition(TOPIC, partition))

    def _make(self, case: Case, partition: TopicPartition) -> None:
        if case.kind == "hanging":
            write_after_end(self._cluster, partition, case.name, self._drawn.randrange(1, 4))
            return
        producer = producing(self._cluster, case.name, 900_000 if case.kind == "long" else 120_000)
        producer.begin_transaction()
        for _ in range(self._drawn.randrange(1, 5)):
            producer.produce(TOPIC, b"x", partition=partition.partition)
        producer.flush(30)
        if case.kind == "ended":
            producer.commit_transaction(30)
        self.producers.append(producer)


def producing(cluster: EmbeddedCluster, name: str, timeout_ms: int) -> Producer:
    config = {"transactional.id": name, "transaction.timeout.ms": timeout_ms}
    producer = Producer({**cluster.client_config(), **config})
    producer.init_transactions(60)
    return producer


def observed(cluster: EmbeddedCluster, topic: str) -> list[OpenTransaction]:
    """Observe a topic's partitions, again while a broker of a busy machine answers too late."""
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers)
    lister = EndOffsetLister(admin_client(settings))

    async def listed() -> EndOffsetListing:
        protocol = ClusterProtocol(aiokafka_config(settings), TIMEOUT_SECONDS)
        async with protocol.connections:
            return await lister.list_ends(protocol, lambda name: name == topic)

    until = time.monotonic() + 60
    while True:
        listing = asyncio.run(listed())
        ends = {p: e for p, e in listing.found.items() if e.last_stable_offset < e.end_offset}
        found, missing = asyncio.run(observe(cluster, ends))
        late = [reason for reason in missing.reasons if "did not answer in time" in reason]
        if not late or time.monotonic() > until:
            assert missing.reasons == ()
            return found
        time.sleep(1)


async def observe(
    cluster: EmbeddedCluster, ends: dict[ids.TopicPartition, EndOffsets]
) -> tuple[list[OpenTransaction], Missing]:
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers)
    async with ClusterProtocol(aiokafka_config(settings), TIMEOUT_SECONDS) as protocol:
        return await TransactionObserver(protocol).observe(ends)


def test_holders_their_age_and_which_hang_are_as_kafkas_tool_says(
    brokers: EmbeddedCluster, tool: Callable[..., list[Row]]
) -> None:
    print(f"seed {SEED}")
    cases = Cases(brokers, SEED)
    wait_ended(brokers, cases)
    found = observed(brokers, TOPIC)
    at = {held.partition: (one, held) for one in found for held in one.partitions}
    hanging = [
        row
        for node in (1, 2)
        for row in tool("find-hanging", "--broker-id", str(node), "--max-transaction-timeout", "0")
        if row["Topic"] == TOPIC
    ]
    assert {
        (held.partition, one.producer_id, held.first_offset)
        for one, held in at.values()
        if one.hanging
    } == {(int(r["Partition"]), int(r["ProducerId"]), int(r["StartOffset"])) for r in hanging}
    for partition, case in cases.drawn.items():
        if case.kind == "ended":
            assert partition not in at, case
            continue
        one, held = at[partition]
        producers = tool("describe-producers", "--topic", TOPIC, "--partition", str(partition))
        [open_one] = [
            p for p in producers if p["CurrentTransactionStartOffset"] not in ("", "None")
        ]
        assert str(held.first_offset) == open_one["CurrentTransactionStartOffset"], case
        assert str(one.producer_id) == open_one["ProducerId"], case
        assert str(one.producer_epoch) == open_one["ProducerEpoch"], case
        assert str(one.last_write_ms) == open_one["LastTimestamp"], case
        assert one.hanging == (case.kind == "hanging"), case
        assert one.transactional_id == case.name, case
        if one.hanging:
            continue
        [described] = tool("describe", "--transactional-id", case.name)
        assert one.state == described["TransactionState"], case
        assert str(one.timeout_ms) == described["TransactionTimeoutMs"], case
        assert str(one.started_at_ms) == described["CurrentTransactionStartTimeMs"], case


def wait_ended(cluster: EmbeddedCluster, cases: Cases) -> None:
    """Wait until the markers of the ended transactions are written."""
    ended = {n for n, case in cases.drawn.items() if case.kind == "ended"}
    for _ in range(100):
        found = observed(cluster, TOPIC)
        if not ended & {held.partition for one in found for held in one.partitions}:
            return
        time.sleep(0.1)
    raise AssertionError("a transaction that was committed is still open")


def test_no_healthy_transaction_is_said_to_hang(brokers: EmbeddedCluster) -> None:
    """Producers that end and begin transactions all the time, while they are observed."""
    seen: set[Any] = set()
    wrong: list[OpenTransaction] = []
    stopping = False
    producers = [producing(brokers, f"busy-{number}", 60_000) for number in range(4)]
    drawn = random.Random(SEED)

    def run(number: int) -> None:
        producer = producers[number]
        while not stopping:
            producer.begin_transaction()
            for partition in range(number, HEALTHY, 4):
                producer.produce(BUSY, b"x", partition=partition)
            producer.flush(30)
            (producer.commit_transaction if drawn.random() < 0.7 else producer.abort_transaction)(
                30
            )

    running = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for one in running:
        one.start()
    began = now_ms()
    try:
        while len(seen) < HEALTHY and now_ms() - began < 60_000:
            for found in observed(brokers, BUSY):
                wrong += [found] if found.hanging else []
                seen.update((held.partition, held.first_offset) for held in found.partitions)
    finally:
        stopping = True
        for one in running:
            one.join()
    assert not wrong
    assert len(seen) >= HEALTHY


def test_a_partition_without_a_leader_and_one_that_is_gone_cost_only_themselves(
    brokers: EmbeddedCluster,
) -> None:
    gone = ids.TopicPartition("gone", 7)
    found, missing = asyncio.run(observe(brokers, {gone: EndOffsets(0, 0, 5, now_ms())}))
    assert found == []
    assert missing.partitions == 1
