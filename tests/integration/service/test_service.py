"""The service beside a real cluster: transactions, and topics deleted under it."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from tests.integration.conftest import MakeTopic
from tests.support.service import Service, commit, wait_for


def transactional_commit(
    cluster: EmbeddedCluster, group: str, topic: str, offset: int, *, transaction: str
) -> Producer:
    """Begin a transaction that produces a record and commits an offset; it stays open."""
    config = cluster.client_config()
    producer = Producer({**config, "transactional.id": transaction})
    consumer = Consumer({**config, "group.id": group})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction")
    offsets = [TopicPartition(topic, 0, offset)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
    consumer.close()
    return producer


def test_commits_of_an_open_and_of_an_aborted_transaction_never_count(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    produce(cluster, topic, 10)
    open_transaction = transactional_commit(cluster, group, topic, 7, transaction=group)
    commit(cluster, f"{group}-beside", topic, 4)
    service.wait_value(4, "group_committed_offset", group=f"{group}-beside")
    assert service.value("group_committed_offset", group=group) is None
    with Service(cluster) as second:  # an open transaction keeps nobody from being ready
        assert second.value("group_committed_offset", group=group) is None
    open_transaction.abort_transaction(30)
    commit(cluster, group, topic, 3)
    seen: set[float | None] = set()
    wait_for(
        "the commit after the aborted one",
        lambda: seen.add(service.value("group_committed_offset", group=group)) or 3.0 in seen,
    )
    assert seen <= {None, 3.0}


def test_a_transaction_marker_at_the_tail_of_the_log_keeps_nobody_from_being_ready(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    produce(cluster, topic, 10)
    transactional_commit(cluster, group, topic, 7, transaction=group).commit_transaction(30)
    service.wait_value(7, "group_committed_offset", group=group)
    with Service(cluster) as second:
        assert second.value("group_committed_offset", group=group) == 7
        assert second.value("offsets_reader_lag_records") == 0


def test_a_deleted_topic_takes_its_series_along_and_no_others(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str
) -> None:
    doomed, kept = make_topic("doomed"), make_topic("kept")
    for topic in (doomed, kept):
        produce(cluster, topic, 10)
        commit(cluster, group, topic, 4)
        service.wait_value(6, "group_lag_records", group=group, topic=topic)
    admin = AdminClient(cluster.client_config())
    admin.delete_topics([doomed])[doomed].result(30)
    for name in ("group_lag_records", "group_committed_offset"):
        service.wait_value(None, name, group=group, topic=doomed)
    wait_for("its ends go", lambda: not [s for s in service.metrics() if doomed in str(s.labels)])
    produce(cluster, kept, 1)
    service.wait_value(7, "group_lag_records", group=group, topic=kept)
    assert service.ready()
