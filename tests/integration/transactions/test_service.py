"""A group behind an open transaction: what the service and the commands say of it, and of its holder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import read_topic
from caughtup.models.records.keys import encode_producer
from caughtup.models.records.transactions import FORMAT
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.integration.conftest import MakeTopic
from tests.support.service import Service, caughtup, commit, wait_for


def reads_regularly(cluster: EmbeddedCluster, group: str, topic: str, count: int = 5) -> int:
    """Let a group read records and commit about twice a second, and return its last offset."""
    for number in range(1, count + 1):
        produce(cluster, topic, 1)
        time.sleep(0.4)
        commit(cluster, group, topic, number)
    return count


def written(cluster: EmbeddedCluster, service: Service) -> list[tuple[bytes | None, bytes | None]]:
    """Return the keys and values that a service wrote about transactions."""
    records = read_topic(cluster, service.topic("transactions"))
    return [(record.key, record.value) for record in records]


@pytest.fixture
def producer(cluster: EmbeddedCluster, group: str) -> Producer:
    """A transactional producer, whose transactions may be open for ten minutes."""
    config = {"transactional.id": f"holder-of-{group}", "transaction.timeout.ms": 600_000}
    made = Producer({**cluster.client_config(), **config})
    made.init_transactions(30)
    return made


def test_a_group_behind_an_open_transaction_is_blocked_by_its_holder_until_it_ends(
    cluster: EmbeddedCluster,
    service: Service,
    make_topic: MakeTopic,
    producer: Producer,
    group: str,
    tmp_path: Path,
) -> None:
    topic, other = make_topic(), f"{group}-uncommitted"
    read = reads_regularly(cluster, group, topic)
    service.wait_value(read, "partition_end_offset", topic=topic, isolation="read_committed")
    producer.begin_transaction()
    for _ in range(3):
        producer.produce(topic, b"open")
    producer.flush(30)
    commit(cluster, other, topic, read + 3)  # who reads uncommitted records reads on
    service.wait_value(1, "group_status", group=group, status="blocked")
    name = f"holder-of-{group}"
    wait_for(
        "the holder is known",
        lambda: service.value("transaction_open_seconds", transactional_id=name) is not None,
    )
    lines = caughtup("transactions", "--service", service.url, "--json", directory=tmp_path).lines
    [line] = [line for line in lines if line.get("transactional_id") == name]
    assert line["state"] == "Ongoing"
    assert line["hanging"] is False
    assert line["timeout_ms"] == 600_000
    assert line["partitions"] == [[topic, 0, read]]
    assert line["blocked_groups"] == [group]
    assert line["records_behind"] == 3
    assert abs(line["started_at_ms"] / 1000 - time.time()) < 120
    assert f"--transactional-id {name}" in line["advice"]

    def lag_of_group() -> str:
        return caughtup("lag", group, "--service", service.url, "--wide", directory=tmp_path).out

    # The holder is in the reason from the group's next assessment on.
    held_by = f"it is held back by an open transaction of {name}"
    wait_for("the reason names the holder", lambda: held_by in lag_of_group())
    shown = lag_of_group()
    assert "cannot read the 3 offsets after the last stable offset 5" in shown
    assert held_by in shown
    assert service.value("group_status", group=other, status="ok") == 1
    assert 0 < (service.value("transaction_open_seconds", transactional_id=name) or 0) < 120
    assert service.value("transactions_hanging") == 0
    table = caughtup("transactions", "-b", cluster.bootstrap_servers, directory=tmp_path)
    assert table.code == 0, table
    assert name in table.out
    key = encode_producer(line["producer_id"], line["producer_epoch"])
    record = next(value for of, value in written(cluster, service) if of == key)
    assert record is not None
    assert FORMAT.decode(record).transaction.transactional_id == name
    producer.commit_transaction(30)
    service.wait_value(0, "group_status", group=group, status="blocked")
    wait_for(
        "the transaction is over",
        lambda: service.value("transaction_open_seconds", transactional_id=name) is None,
    )
    wait_for("a tombstone is written", lambda: (key, None) in written(cluster, service))


def test_a_transaction_that_holds_back_only_offsets_is_shown_too(
    cluster: EmbeddedCluster,
    service: Service,
    make_topic: MakeTopic,
    producer: Producer,
    group: str,
    tmp_path: Path,
) -> None:
    def shown(*where: str) -> list[dict[str, Any]]:
        lines = caughtup("transactions", *where, "--json", directory=tmp_path).lines
        return [line for line in lines if line.get("transactional_id") == f"holder-of-{group}"]

    metadata = Consumer({"group.id": group}).consumer_group_metadata()
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(make_topic(), 0, 7)], metadata, 30)
    [line] = wait_for("it is shown", lambda: shown("--service", service.url))
    [(topic, _, _)] = line["partitions"]
    assert (topic, line["state"], line["hanging"]) == (CONSUMER_OFFSETS, "Ongoing", False)
    [looked] = shown("-b", cluster.bootstrap_servers)
    assert looked["partitions"] == line["partitions"]
    producer.commit_transaction(30)
    wait_for("it is over", lambda: not shown("--service", service.url))


def test_where_nothing_is_held_back_there_is_nothing_and_3(
    cluster: EmbeddedCluster, service: Service, tmp_path: Path
) -> None:
    wait_for("no transaction is open", lambda: service.value("transactions_open") == 0)
    for where in (("-b", cluster.bootstrap_servers), ("--service", service.url)):
        ran = caughtup("transactions", *where, directory=tmp_path)
        assert ran.code == 3
        assert ran.message == "no open transaction holds anything back"
