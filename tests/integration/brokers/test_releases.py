"""Brokers of other releases than the one that everything else runs on: with ``make thorough``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.ids import TopicPartition as Partition
from tests.support.kafka.transactions import commit_in_transaction, transactional
from tests.support.releases import broker_classpath
from tests.support.service import Service, caughtup, commit, wait_for

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

RELEASES = ("3.3.2", "3.6.2", "3.7.2", "3.9.1", "4.0.0", "4.1.1", "4.2.0", "4.4.0")


@pytest.fixture(scope="module", params=RELEASES)
def old_cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=2, kafka=broker_classpath(request.param)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def service(old_cluster: EmbeddedCluster) -> Iterator[Service]:
    with Service(old_cluster) as service:
        yield service


def test_commits_and_transactions_have_the_lag_that_kafka_says(
    old_cluster: EmbeddedCluster, service: Service, tmp_path: Path
) -> None:
    create_topics(old_cluster, {"words": 1})
    produce(old_cluster, "words", 100)
    commit(old_cluster, "plain", "words", 40)
    service.wait_total(60, "group_lag_records", group="plain")
    producer = transactional(old_cluster)
    for aborted, offset in ((True, 90), (False, 70)):
        commit_in_transaction(producer, "exact", [TopicPartition("words", 0, offset)])
        (producer.abort_transaction if aborted else producer.commit_transaction)(30)
    service.wait_value(70, "group_committed_offset", group="exact")
    arguments = ["--bootstrap-servers", old_cluster.bootstrap_servers]
    ran = caughtup("lag", "--format", "json", *arguments, directory=tmp_path)
    assert ran.code == 0, ran
    lags = {line["group"]: line["lag"] for line in ran.lines if line["kind"] == "partition"}
    assert (lags.get("plain"), lags.get("exact")) == (60, 30), ran
    checked = caughtup("check", *arguments, directory=tmp_path)
    assert checked.code == 0, checked


def test_a_reassignment_is_followed_until_it_is_over(
    old_cluster: EmbeddedCluster, service: Service
) -> None:
    topic = NewTopic("moving", num_partitions=1, replica_assignment=[[1]])
    admin = AdminClient(old_cluster.client_config())
    admin.create_topics([topic])["moving"].result(30)
    produce(old_cluster, "moving", 3_000, value_bytes=5_000)
    set_throttle(old_cluster, "moving", 100_000)
    reassigner(old_cluster.bootstrap_servers)(Partition("moving", 0), [2])
    wait_for(
        "it is seen with its rate",
        lambda: any(
            one["topic"] == "moving" and one.get("rate_bytes_per_second")
            for one in service.page()["reassignments"]
        ),
    )
    clear_throttle(old_cluster, "moving")
    wait_for("it is over", lambda: not service.page()["reassignments"])


def test_an_application_is_decided_again_as_its_leader_did(
    old_cluster: EmbeddedCluster, service: Service
) -> None:
    application = StreamsApplication(old_cluster, "counts", partitions=2)
    with application:
        application.start_instance("one")
        produce(old_cluster, application.source, 100, keys=50)
        service.wait_total(0, "group_lag_records", group="counts")
        application.start_instance("two")
        wait_for(
            "two members whose assignment is decided again",
            lambda: (
                (service.value("exact_decisions_total", group="counts", result="match") or 0) >= 2
            ),
        )
    assert not service.value("exact_decisions_total", group="counts", result="mismatch")
