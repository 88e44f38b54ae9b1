"""Where lag tools have been wrong for years: the service and the command both tell the truth."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from tests.integration.conftest import MakeTopic
from tests.support.kafka.transactions import commit_in_transaction, transactional
from tests.support.service import Service, caughtup, commit, wait_for


def lag_of(cluster: EmbeddedCluster, group: str, directory: Path) -> int:
    """Add up what ``caughtup lag`` says of a group's partitions."""
    arguments = ["--bootstrap-servers", cluster.bootstrap_servers, "--format", "json"]
    ran = caughtup("lag", group, *arguments, directory=directory)
    assert ran.code == 0, ran
    return sum(line["lag"] for line in ran.lines if line["kind"] == "partition")


def fill(cluster: EmbeddedCluster, topic: str, partition: int, count: int) -> None:
    """Write records to one partition."""
    producer = Producer(cluster.client_config())
    for _ in range(count):
        producer.produce(topic, b"record", partition=partition)
    assert producer.flush(30) == 0


def member(cluster: EmbeddedCluster, group: str, topic: str, **config: object) -> Consumer:
    """Join a group with one member that never commits by itself, and wait for its partitions."""
    consumer = Consumer(
        {
            **cluster.client_config(),
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **config,
        }
    )
    consumer.subscribe([topic])
    wait_assigned(consumer, 1)
    return consumer


def wait_assigned(consumer: Consumer, partitions: int) -> None:
    """Poll until a member has so many partitions or more; what it reads is dropped."""

    def assigned() -> bool:
        consumer.poll(0.1)
        return len(consumer.assignment()) >= partitions

    wait_for("the assignment", assigned)


def test_an_aborted_and_an_open_commit_leave_the_lag_at_3600(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    topic = make_topic(partitions=4)
    for partition in range(4):
        fill(cluster, topic, partition, 1_000)
        commit(cluster, group, topic, 100, partition=partition)
    aborted, open_one = transactional(cluster), transactional(cluster)
    everywhere = [TopicPartition(topic, partition, 900) for partition in range(4)]
    commit_in_transaction(aborted, group, everywhere)
    aborted.abort_transaction(30)
    commit_in_transaction(open_one, group, [TopicPartition(topic, p, 950) for p in range(4)])
    assert lag_of(cluster, group, tmp_path) == 3_600
    service.wait_total(3_600, "group_lag_records", group=group)
    open_one.abort_transaction(30)
    assert lag_of(cluster, group, tmp_path) == 3_600
    service.wait_total(3_600, "group_lag_records", group=group)


def test_who_has_read_all_of_a_transactional_topic_has_no_lag(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    topic = make_topic()
    producer = transactional(cluster)
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(topic, b"committed")
        producer.commit_transaction(30)
    commit(cluster, group, topic, 3)  # behind the second record; a marker follows it
    service.wait_value(0, "group_lag_records", group=group)
    assert lag_of(cluster, group, tmp_path) == 0
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    producer.flush(30)
    producer.abort_transaction(30)
    service.wait_value(6, "partition_end_offset", topic=topic, isolation="read_committed")
    service.wait_value(0, "group_lag_records", group=group)
    assert lag_of(cluster, group, tmp_path) == 0
    produce(cluster, topic, 1)
    service.wait_value(4, "group_lag_records", group=group)


def test_an_open_transaction_s_records_are_no_lag_of_who_reads_committed(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(cluster, topic, 5)
    commit(cluster, group, topic, 5)
    producer = transactional(cluster)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce(topic, b"open")
    producer.flush(30)
    for isolation, end in (("read_committed", 5), ("read_uncommitted", 8)):
        service.wait_value(end, "partition_end_offset", topic=topic, isolation=isolation)
    service.wait_value(0, "group_lag_records", group=group)
    arguments = ["--bootstrap-servers", cluster.bootstrap_servers, "--format", "json"]
    (line,) = caughtup("lag", group, *arguments, directory=tmp_path).lines
    assert (line["lag"], line["lag_committed_view"]) == (0, 3)


def test_partitions_that_were_never_committed_count_from_their_start(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    topic = make_topic(partitions=4)
    for partition in range(4):
        fill(cluster, topic, partition, 1_000)
    consumer = member(cluster, group, topic)
    consumer.commit(offsets=[TopicPartition(topic, p, 1_000) for p in (0, 1)], asynchronous=False)
    service.wait_total(2_000, "group_lag_records", group=group)
    service.wait_total(2, "group_has_commit", group=group)
    assert lag_of(cluster, group, tmp_path) == 2_000
    consumer.close()


def test_a_deleted_group_is_gone(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    produce(cluster, topic, 10)
    consumer = member(cluster, group, topic)
    consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    service.wait_value(6, "group_lag_records", group=group)
    consumer.close()
    admin = AdminClient(cluster.client_config())
    wait_for("it is empty", lambda: not _members(admin, group))
    admin.delete_consumer_groups([group])[group].result(30)
    wait_for("it is gone", lambda: not [s for s in service.metrics() if group in str(s.labels)])


def _members(admin: AdminClient, group: str) -> int:
    return len(admin.describe_consumer_groups([group])[group].result(30).members)


def test_who_steps_back_has_the_lag_of_where_it_stands(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    produce(cluster, topic, 10)
    commit(cluster, group, topic, 10)
    service.wait_value(0, "group_lag_records", group=group)
    admin = AdminClient(cluster.client_config())
    back = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])
    admin.alter_consumer_group_offsets([back])[group].result(30)
    service.wait_value(8, "group_lag_records", group=group)


def test_records_deleted_before_they_were_read_are_no_lag(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    produce(cluster, topic, 10)
    commit(cluster, group, topic, 2)
    service.wait_value(8, "group_lag_records", group=group)
    admin = AdminClient(cluster.client_config())
    upto = TopicPartition(topic, 0, 7)
    admin.delete_records([upto])[upto].result(30)
    service.wait_value(3, "group_lag_records", group=group)


def test_partitions_that_were_added_count_once_they_are_assigned(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    produce(cluster, topic, 10)
    consumer = member(cluster, group, topic, **{"topic.metadata.refresh.interval.ms": 1_000})
    consumer.commit(offsets=[TopicPartition(topic, 0, 10)], asynchronous=False)
    service.wait_total(0, "group_lag_records", group=group)
    admin = AdminClient(cluster.client_config())
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    wait_assigned(consumer, 2)
    fill(cluster, topic, 1, 5)
    service.wait_total(5, "group_lag_records", group=group)
    consumer.close()


def test_a_group_on_the_new_protocol_is_seen_whole_and_goes_whole(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, group: str, tmp_path: Path
) -> None:
    topic = make_topic(partitions=4)
    for partition in range(4):
        fill(cluster, topic, partition, 1_000)
    consumer = member(cluster, group, topic, **{"group.protocol": "consumer"})
    wait_assigned(consumer, 4)
    consumer.commit(offsets=[TopicPartition(topic, 0, 1_000)], asynchronous=False)
    service.wait_total(3_000, "group_lag_records", group=group)
    service.wait_value(1, "group_members", group=group, group_type="consumer")
    assert lag_of(cluster, group, tmp_path) == 3_000
    arguments = ["--bootstrap-servers", cluster.bootstrap_servers, "--format", "json"]
    lines = caughtup("lag", group, *arguments, directory=tmp_path).lines
    (who,) = [line for line in lines if line["kind"] == "member"]
    assert (who["group_type"], who["assigned"]) == ("consumer", [[topic, p] for p in range(4)])
    assert {line["client_id"] for line in lines if line["kind"] == "partition"} == {"rdkafka"}
    consumer.close()
    admin = AdminClient(cluster.client_config())
    wait_for("it is empty", lambda: not _members(admin, group))
    admin.delete_consumer_groups([group])[group].result(30)
    wait_for("it is gone", lambda: not [s for s in service.metrics() if group in str(s.labels)])
