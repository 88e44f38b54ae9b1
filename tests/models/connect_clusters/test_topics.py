"""Worker clusters' topics: found by name, and whose they are; configurations, lag and freshness."""

from __future__ import annotations

from caughtup.models.connect_clusters.configuration import Configuration
from caughtup.models.connect_clusters.topic_sets import TopicSet, find_topic_sets
from caughtup.models.ids import ConnectorTaskId, TopicPartition
from caughtup.models.polls.batch import decode_batch
from caughtup.models.records.connect import (
    ConnectorConfig,
    TaskConfigured,
    TasksCommitted,
    decode_config,
)
from tests.support.connect.clusters import WorkerCluster, settled
from tests.support.connect.playing import Group
from tests.support.groups.records import commit
from tests.support.states import open_transaction


def test_topics_are_found_by_the_word_that_tells_them_apart():
    names = [
        "connect-configs", "connect-offsets", "connect-status",
        "my_connect_configs", "my_connect_statuses",
        "__amazon_msk_connect_configs_eu_1-2", "__amazon_msk_connect_status_eu_1-2",
        "__amazon_msk_connect_offsets_eu_1-2",
        "order-status", "order-configs-x", "caughtup-configs", "caughtup-status", "reconfigs",
    ]  # fmt: skip
    partitions = dict.fromkeys(names, 1) | {"wide-configs": 3, "wide-status": 5}
    assert find_topic_sets(partitions, "caughtup-") == [
        TopicSet(
            "__amazon_msk_connect_configs_eu_1-2",
            "__amazon_msk_connect_status_eu_1-2",
            "__amazon_msk_connect_offsets_eu_1-2",
        ),
        TopicSet("connect-configs", "connect-status", "connect-offsets"),
        TopicSet("my_connect_configs", "my_connect_statuses"),
    ]


def test_of_several_clusters_each_group_has_the_topics_that_its_workers_write_to():
    first = settled()
    second = WorkerCluster(
        Group({}), first.state, "payments", TopicSet("payments-configs", "payments-status")
    )
    second.configure("A", 2)
    second.configure("B", 1)
    second.group.join("W5")
    second.round()
    second.run()
    assert second.lines("group")[0]["topics"]["config"] == "payments-configs"
    assert first.lines("group")[0]["topics"]["config"] == "connect-configs"
    assert first.contradictions() == second.contradictions() == []


def test_what_an_open_transaction_holds_back_of_its_topics_is_said():
    cluster = settled()
    assert cluster.state.wanted_topics()("connect-configs")
    assert "held_back" not in cluster.lines("group")[0]
    held = [TopicPartition("connect-configs", 0), TopicPartition("orders", 0)]
    cluster.state.transactions.apply([open_transaction("connect-cluster-eu", held)], 0)
    assert cluster.lines("group")[0]["held_back"] == [
        (
            "read_committed consumers of connect-configs-0 read nothing beyond offset 90: "
            "it is held back by an open transaction of connect-cluster-eu"
        )
    ]


def test_settings_tell_whose_topics_they_are():
    cluster = settled(topics=TopicSet("eu-settings", "eu-state", "eu-positions"))
    cluster.state.connect.told = {cluster.name: cluster.topics}
    assert cluster.lines("group")[0]["topics"]["status"] == "eu-state"
    cluster.state.connect.told = {cluster.name: TopicSet("missing", "a", "b")}
    assert cluster.lines("group")[0]["topics_unknown"] == "missing does not exist"


def config(name: str) -> ConnectorConfig:
    found = decode_config(f"connector-{name}".encode(), b'{"properties": {}}')
    assert isinstance(found, ConnectorConfig)
    return found


def test_a_configuration_is_known_as_of_each_offset():
    configuration = Configuration()
    task = ConnectorTaskId("A", 0)
    events = [
        config("A"), TaskConfigured(task), TasksCommitted("A", 1), config("B"),
        decode_config(b"connector-A", None), TaskConfigured(task), TasksCommitted("A", 1),
    ]  # fmt: skip
    for offset, event in enumerate(events):
        configuration.apply(event, offset, 1_000 + offset)
    assert [configuration.at(offset) for offset in range(9)] == [
        {}, {"A": 0}, {"A": 0}, {"A": 1}, {"A": 1, "B": 0}, {"B": 0}, {"B": 0}, {"B": 0}, None,
    ]  # fmt: skip


def test_what_is_configured_after_the_newest_generation_is_without_a_worker_since_then():
    cluster = settled()
    cluster.group.now_ms += 5_000
    cluster.configure("C", 1)
    found = cluster.lines("unassigned")
    assert [(one["name"], one["since_ms"]) for one in found] == [
        ("C", cluster.group.now_ms),
        ("C-0", cluster.group.now_ms),
    ]
    assert all("goes_to" not in one for one in found)


def test_a_sink_has_the_lag_of_its_consumer_group_and_a_source_the_age_of_its_offsets():
    cluster = settled()
    cluster.configure("sink", 1, topics="orders, payments")
    cluster.configure("own", 1, topics="orders", **{"consumer.override.group.id": "mine"})
    cluster.round()
    cluster.run()
    cluster.source_offset("A")
    cluster.source_offset("A", "b")
    batch = decode_batch([commit(0, 7, topic="orders", group="connect-sink")])
    cluster.state.apply_batch(batch, cluster.group.now_ms)
    by_name = {one["name"]: one for one in cluster.lines("connector")}
    assert by_name["sink"]["consumer_group"] == "connect-sink"
    assert (by_name["sink"]["type"], by_name["sink"]["partitions"]) == ("sink", 1)
    assert by_name["own"]["consumer_group"] == "mine"
    assert (by_name["A"]["type"], by_name["A"]["source_partitions"]) == ("source", 2)
    assert by_name["A"]["offsets_at_ms"] == cluster.group.now_ms
    assert "offsets_at_ms" not in by_name["B"]
