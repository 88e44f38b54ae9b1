"""Commits that benchmarks send in transactions: all of them count at the coordinator."""

from __future__ import annotations

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.fleet.transactional_commits import TransactionalCommits
from caughtup.models.errors import CaughtupError
from tests.integration.conftest import MakeTopic


def test_each_group_has_what_was_committed_last(
    cluster: EmbeddedCluster, group: str, make_topic: MakeTopic
) -> None:
    topic, groups = make_topic(), [f"{group}-{number}" for number in range(3)]
    with TransactionalCommits(cluster.bootstrap_servers) as transactions:
        for offset in range(1, 4):
            for name in groups:
                transactions.commit(name, [TopicPartition(topic, 0, offset)])
    admin = AdminClient(cluster.client_config())
    for name in groups:
        [asked] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)]).values()
        assert [one.offset for one in asked.result(30).topic_partitions] == [3]


def test_one_that_fails_is_an_error(cluster: EmbeddedCluster, group: str) -> None:
    def commit_twice() -> None:
        with TransactionalCommits(cluster.bootstrap_servers, seconds=5) as transactions:
            transactions.commit(group, [TopicPartition("no-such-topic", 0, 1)])
            transactions.commit(group, [TopicPartition("no-such-topic", 0, 2)])

    with pytest.raises(CaughtupError, match="a transaction: "):
        commit_twice()
