"""The embedded cluster is a Kafka like any other, and leaves nothing behind."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
)

from caughtup.demo.cluster.broker_config import ClientConfig, Security, Tls
from caughtup.demo.cluster.cluster import BrokerFailed, EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.processes.watchdog import start_time
from caughtup.models.errors import CaughtupError
from tests.integration.conftest import MakeCluster, MakeTopic
from tests.support.kafka.acls import WRITE, allow, topic

USERS = {"admin": "admin's", "alice": 'back\\slash and "quotes"', "bob": "pässwörd"}


def produce(config: ClientConfig, topic: str, values: list[bytes]) -> None:
    refused: list[KafkaError] = []
    producer = Producer({**config, "acks": "all", "message.timeout.ms": 30_000})
    for value in values:
        producer.produce(
            topic, value, on_delivery=lambda error, _: refused.append(error) if error else None
        )
    assert producer.flush(40) == 0
    if refused:
        raise KafkaException(refused[0])


def consume(config: ClientConfig, topic: str, count: int) -> list[bytes | None]:
    settings = {"group.id": f"group-{uuid.uuid4().hex[:8]}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, **settings})
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 30
        values: list[bytes | None] = []
        while len(values) < count and time.monotonic() < deadline:
            for message in consumer.consume(count - len(values), timeout=1):
                if problem := message.error():
                    raise KafkaException(problem)
                values.append(message.value())
        return values
    finally:
        consumer.close()


def create_topic(config: ClientConfig, name: str, replicas: int = -1) -> None:
    admin = AdminClient(config)  # Held: a collected client drops what it was asked.
    admin.create_topics([NewTopic(name, 1, replicas)])[name].result(30)


def test_records_go_in_and_come_out(cluster: EmbeddedCluster, make_topic: MakeTopic) -> None:
    topic = make_topic("words", partitions=3)
    values = [b"%d" % number for number in range(100)]
    produce(cluster.client_config(), topic, values)
    assert sorted(consume(cluster.client_config(), topic, 100)) == sorted(values)


def test_a_topic_is_replicated_on_both_nodes(cluster: EmbeddedCluster) -> None:
    topic = f"topic-{uuid.uuid4().hex[:8]}"
    create_topics(cluster, {topic: 1}, replicas=2)
    metadata = AdminClient(cluster.client_config()).list_topics(topic, timeout=10)
    assert sorted(metadata.topics[topic].partitions[0].replicas) == [1, 2]


@pytest.mark.thorough
def test_nodes_that_were_stopped_or_killed_come_back_with_their_data(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(nodes=2)
    create_topic(cluster.client_config(), "kept")
    produce(cluster.client_config(), "kept", [b"before"])
    cluster.stop_node(2)
    assert cluster.running_nodes == (1,)
    produce(cluster.client_config(), "kept", [b"while one was stopped"])
    cluster.start_node(2)
    cluster.kill_node(1)
    assert cluster.running_nodes == (2,)
    cluster.start_node(1)
    assert cluster.running_nodes == (1, 2)
    produce(cluster.client_config(), "kept", [b"after"])
    found = consume(cluster.client_config(), "kept", 3)
    assert found == [b"before", b"while one was stopped", b"after"]


@pytest.mark.thorough
def test_three_controllers_outlive_the_loss_of_one(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(nodes=3, controllers=3)
    cluster.kill_node(1)
    cluster.wait_ready()
    create_topic(cluster.client_config(), "made-without-node-1", replicas=2)


@pytest.mark.thorough
def test_sasl_tells_users_apart_and_acls_tell_what_they_may_do(make_cluster: MakeCluster) -> None:
    security = Security("sasl_plaintext", USERS, authorizer=True)
    cluster = make_cluster(security=security)
    admin = cluster.client_config()
    create_topic(admin, "private")
    produce(cluster.client_config("admin"), "private", [b"by admin"])
    with pytest.raises(KafkaException) as refused:
        produce(cluster.client_config("alice"), "private", [b"by alice"])
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allow(AdminClient(admin), "alice", topic("private", WRITE))
    produce(cluster.client_config("alice"), "private", [b"by alice"])
    assert consume(admin, "private", 2) == [b"by admin", b"by alice"]


@pytest.mark.thorough
def test_a_wrong_password_is_refused(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(security=Security("sasl_plaintext", USERS))
    right = AdminClient(cluster.client_config("bob"))
    assert list(right.list_topics(timeout=20).brokers) == [1]
    codes: list[int] = []
    wrong = AdminClient(
        {
            **cluster.client_config("bob"),
            "sasl.password": "guessed",
            "log_level": 0,
            "error_cb": lambda error: codes.append(error.code()),
        }
    )
    deadline = time.monotonic() + 20
    while KafkaError._AUTHENTICATION not in codes and time.monotonic() < deadline:
        wrong.poll(0.1)
    assert KafkaError._AUTHENTICATION in codes


@pytest.mark.heavy
def test_sasl_over_tls_works_with_pem_files(make_cluster: MakeCluster, tls: Tls) -> None:
    cluster = make_cluster(security=Security("sasl_ssl", USERS, tls=tls))
    config = cluster.client_config("alice")
    assert config["security.protocol"] == "SASL_SSL"
    create_topic(config, "secret")
    produce(config, "secret", [b"whispered"])
    assert consume(config, "secret", 1) == [b"whispered"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"listeners": "sasl_plaintext"},
        {"listeners": "sasl_ssl", "users": USERS},
        {"authorizer": True},
    ],
)
def test_security_that_contradicts_itself_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(CaughtupError, match="bad_security"):
        Security(**arguments)  # type: ignore[arg-type]


def test_a_node_that_cannot_start_says_why_in_one_line_and_where_its_log_is() -> None:
    cluster = EmbeddedCluster()
    port = int(cluster.bootstrap_servers.rpartition(":")[2])
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", port))
        squatter.listen()
        with pytest.raises(BrokerFailed) as failed:
            cluster.start()
    match = re.fullmatch(r"(?P<what>.*) \(log: (?P<log>.*)\)", failed.value.message)
    assert match, failed.value.message
    assert "ended with exit code 1" in match["what"]
    assert f"failed to bind to 127.0.0.1:{port}: Address already in use" in match["what"]
    log = Path(match["log"])
    try:
        assert f"failed to bind to 127.0.0.1:{port}" in log.read_text()
    finally:
        log.unlink()
        log.parent.rmdir()
    assert not cluster.processes.directory.exists()


def test_a_killed_program_leaves_no_broker_and_no_data() -> None:
    script = """
import time
from caughtup.demo.cluster.cluster import EmbeddedCluster
cluster = EmbeddedCluster()
cluster.start()
print(cluster._running[1].pid, cluster.processes.directory, flush=True)
time.sleep(300)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        pid, directory = program.stdout.readline().split()
        assert start_time(int(pid)) is not None
        program.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while start_time(int(pid)) is not None or Path(directory).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
