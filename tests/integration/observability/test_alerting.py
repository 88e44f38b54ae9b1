"""Real Kafka, the service, a real Prometheus and Alertmanager: who is told of what, and of what not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from ruamel.yaml import YAML

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import set_throttle
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.ids import TopicPartition
from tests.observability.repository import RULES, read_yaml
from tests.support.observability.alertmanager import Alertmanager, Webhook
from tests.support.observability.prometheus import Prometheus
from tests.support.service import Service, wait_for

pytestmark = pytest.mark.heavy

#: A broker may be away for a minute before a movement to it is dead: nobody is told of a restart.
SECONDS = 180.0
FINE, LOST = TopicPartition("fine", 0), TopicPartition("lost", 0)
#: The only one that is neither controller nor leads anything of what moves.
TARGET = 3
THROTTLE_BYTES = 300_000
RECORDS, RECORD_BYTES = 15_000, 5_000
DEAD_TARGET = "CaughtupReassignmentDeadTarget"


class Watched(NamedTuple):
    """A cluster on which two partitions move slowly, and all that watches it."""

    cluster: EmbeddedCluster
    service: Service
    prometheus: Prometheus
    webhook: Webhook


def rules_at_once(directory: Path) -> Path:
    """Write our rules with hardly a wait before an alert fires."""
    rules = read_yaml(RULES)
    for rule in (rule for group in rules["groups"] for rule in group["rules"] if "for" in rule):
        rule["for"] = "2s"
    path = directory / "caughtup.rules.yml"
    YAML(typ="safe", pure=True).dump(rules, path)
    return path


def start_moves(cluster: EmbeddedCluster) -> None:
    """Move 75 MB of each partition from broker 1, so slowly that it takes minutes."""
    admin = AdminClient(cluster.client_config())
    reassign = reassigner(cluster.bootstrap_servers)
    for partition, target in ((FINE, 2), (LOST, TARGET)):
        topic = NewTopic(partition.topic, num_partitions=1, replica_assignment=[[1]])
        admin.create_topics([topic])[partition.topic].result(30)
        produce(cluster, partition.topic, RECORDS, value_bytes=RECORD_BYTES)
        set_throttle(cluster, partition.topic, THROTTLE_BYTES)
        reassign(partition, [target])


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    directory = tmp_path_factory.mktemp("alerting")
    with ExitStack() as running:
        replicated = {"offsets.topic.replication.factor": "2"}
        cluster = running.enter_context(EmbeddedCluster(3, broker_properties=replicated))
        create_topics(cluster, {"words": 1})
        service = running.enter_context(Service(cluster, topic_replication_factor=2))
        webhook = running.enter_context(Webhook())
        alertmanager = Alertmanager(cluster.processes, webhook.url, directory)
        target, rules = f"127.0.0.1:{service.port}", rules_at_once(directory)
        prometheus = Prometheus(cluster.processes, target, directory, alertmanager.address, rules)
        alertmanager.wait_ready()
        prometheus.wait_ready()
        start_moves(cluster)
        yield Watched(cluster, service, prometheus, webhook)


def topics_told_of(webhook: Webhook) -> set[str]:
    """Name the topics of all alerts on reassignments that anybody was told of."""
    reassignments = [
        alert["labels"]
        for alert in webhook.told
        if alert["labels"]["alertname"].startswith("CaughtupReassignment")
    ]
    return {labels.get("topic", "") for labels in reassignments}


def verdict(watched: Watched, partition: TopicPartition) -> str | None:
    """Ask Prometheus how a partition in movement fares."""
    series = f'caughtup_reassignment_status{{topic="{partition.topic}"}} == 1'
    found: list[Any] = watched.prometheus.instant(series, time.time())
    return found[0]["metric"]["status"] if found else None


def test_a_move_whose_target_is_killed_is_told_of_with_its_cause_and_a_healthy_one_is_not(
    watched: Watched,
) -> None:
    for partition in (FINE, LOST):
        wait_for(f"{partition} moves", lambda p=partition: verdict(watched, p) == "moving", SECONDS)
    assert watched.webhook.told == []
    watched.cluster.kill_node(TARGET)
    wait_for("somebody is told", lambda: watched.webhook.alerts(DEAD_TARGET), SECONDS)
    (alert,) = watched.webhook.alerts(DEAD_TARGET)
    assert alert["receiver"] == "page"
    labels = {**alert["labels"]}
    assert labels.pop("instance")
    assert labels == {
        "alertname": DEAD_TARGET,
        "severity": "page",
        "cluster": watched.cluster.cluster_id,
        "job": "caughtup",
        "topic": LOST.topic,
        "partition": str(LOST.partition),
        "status": "dead_target",
    }
    described = alert["annotations"]["description"]
    assert described.endswith("Cause: destination-broker-down.")
    assert topics_told_of(watched.webhook) == {LOST.topic}
    assert verdict(watched, FINE) == "moving"


def test_it_is_told_when_the_target_is_back_and_then_of_nothing_more(watched: Watched) -> None:
    """Needs the one before it."""
    watched.cluster.start_node(TARGET)
    wait_for("the end is told", lambda: watched.webhook.alerts(DEAD_TARGET, "resolved"), SECONDS)
    wait_for("it moves again", lambda: verdict(watched, LOST) == "moving", SECONDS)
    assert topics_told_of(watched.webhook) == {LOST.topic}
    assert len(watched.webhook.alerts(DEAD_TARGET)) == 1
