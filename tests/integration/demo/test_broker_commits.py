"""Commits that benchmarks send through the brokers: all of them count at the coordinator."""

from __future__ import annotations

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.fleet.broker_commits import BrokerCommits
from caughtup.models.errors import CaughtupError
from tests.integration.conftest import MakeTopic
from tests.support.service import wait_for


@pytest.mark.parametrize("in_transaction", [False, True])
def test_each_group_has_what_it_committed(
    cluster: EmbeddedCluster, group: str, make_topic: MakeTopic, *, in_transaction: bool
) -> None:
    topic, groups = make_topic(), [f"{group}-{number}" for number in range(3)]
    for offset in range(1, 4):
        with BrokerCommits(cluster.bootstrap_servers) as commits:
            for name in groups:
                offsets = [TopicPartition(topic, 0, offset)]
                commits.commit(name, offsets, in_transaction=in_transaction)
    admin = AdminClient(cluster.client_config())

    def fetched(name: str) -> list[int]:
        [asked] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)]).values()
        return [one.offset for one in asked.result(30).topic_partitions]

    for name in groups:
        # A transaction's commits count once its marker is there: after EndTxn has been answered.
        wait_for(f"{name} has 3", lambda name=name: fetched(name) == [3])


def test_one_that_fails_is_an_error(cluster: EmbeddedCluster, group: str) -> None:
    def commit_twice() -> None:
        with BrokerCommits(cluster.bootstrap_servers, seconds=5) as commits:
            for offset in (1, 2):
                offsets = [TopicPartition("no-such-topic", 0, offset)]
                commits.commit(group, offsets, in_transaction=True)

    with pytest.raises(CaughtupError, match="a group's offsets: "):
        commit_twice()
