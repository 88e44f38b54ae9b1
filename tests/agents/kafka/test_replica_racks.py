"""The racks of replicas, of what brokers say of partitions and of themselves."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.replica_racks import replica_racks
from caughtup.models.ids import TopicPartition


class Client:
    """An AdminClient of three brokers, of which one has no rack; a fourth one is down."""

    def describe_cluster(self, **_: object) -> Future[Any]:
        racks = {1: "a", 2: "b", 3: ""}
        nodes = [SimpleNamespace(id=broker, rack=rack) for broker, rack in racks.items()]
        described: Future[Any] = Future()
        described.set_result(SimpleNamespace(nodes=nodes))
        return described


def test_each_replica_has_its_brokers_rack() -> None:
    partitions = {0: SimpleNamespace(replicas=[2, 1]), 1: SimpleNamespace(replicas=[3, 4])}
    metadata = SimpleNamespace(
        topics={
            "words": SimpleNamespace(partitions=partitions),
            "others": SimpleNamespace(partitions=partitions),
        }
    )
    admin = cast(AdminClient, Client())
    assert replica_racks(admin, metadata, lambda topic: topic == "words") == {
        TopicPartition("words", 0): ("b", "a"),
        TopicPartition("words", 1): (None, None),
    }
