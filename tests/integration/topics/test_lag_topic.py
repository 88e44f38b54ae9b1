"""caughtup-lag: the lag table as a topic that anybody can read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from tests.integration.conftest import MakeTopic
from tests.support.service import Service, commit, wait_for


class LagReader:
    """Reads a service's caughtup-lag from its start: the last value of each key."""

    def __init__(self, cluster: EmbeddedCluster, topic: str) -> None:
        self.table: dict[tuple[str | int, ...], dict[str, Any] | None] = {}
        self._consumer = Consumer({**cluster.client_config(), "group.id": "looks-only"})
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def read(self) -> dict[tuple[str | int, ...], dict[str, Any] | None]:
        """Read what has come meanwhile, and give the table."""
        for message in self._consumer.consume(1_000, timeout=0.1):
            assert message.error() is None, message.error()
            value = message.value()
            decoded = None if value is None else json.loads(value)
            self.table[tuple(json.loads(message.key() or b""))] = decoded
        return self.table

    def find(self, *key: str | int) -> dict[str, Any] | None:
        """Read what has come meanwhile, and give a key's last value."""
        return self.read().get(key)

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def service(cluster: EmbeddedCluster) -> Iterator[Service]:
    with Service(cluster, lag_interval=0.3) as service:
        yield service


@pytest.fixture
def reader(cluster: EmbeddedCluster, service: Service) -> Iterator[LagReader]:
    reader = LagReader(cluster, service.topic("lag"))
    yield reader
    reader.close()


def test_a_group_is_written_as_it_changes_and_gone_when_it_is(
    cluster: EmbeddedCluster, service: Service, reader: LagReader, make_topic: MakeTopic
) -> None:
    topic, group = make_topic(), f"readers-{uuid.uuid4().hex[:8]}"
    produce(cluster, topic, 10)
    commit(cluster, group, topic, 4)

    def lag() -> int | None:
        return (reader.find(group, topic, 0) or {}).get("lag")

    wait_for("a lag of 6", lambda: lag() == 6)
    line = reader.find(group, topic, 0)
    assert line is not None
    assert {name: line[name] for name in ("kind", "group", "committed", "end_offset")} == {
        "kind": "partition",
        "group": group,
        "committed": 4,
        "end_offset": 10,
    }
    commit(cluster, group, topic, 10)
    wait_for("a lag of 0", lambda: lag() == 0)
    admin = AdminClient(cluster.client_config())
    admin.delete_consumer_groups([group])[group].result(30)
    wait_for("a tombstone", lambda: reader.find(group, topic, 0) is None)
    assert (group, topic, 0) in reader.table


def test_a_restart_writes_nothing_again_and_sweeps_out_what_went_meanwhile(
    cluster: EmbeddedCluster, service: Service, reader: LagReader, make_topic: MakeTopic
) -> None:
    topic, name = make_topic(), uuid.uuid4().hex[:8]
    stays, goes, comes = (f"{kind}-{name}" for kind in ("stays", "goes", "comes"))
    produce(cluster, topic, 10)
    for group in (stays, goes):
        commit(cluster, group, topic, 10)
        wait_for(
            f"{group} with a verdict",
            lambda group=group: (reader.find(group, topic, 0) or {}).get("verdict") == "ok",
        )
    assert service.stop() == 0
    admin = AdminClient(cluster.client_config())
    admin.delete_consumer_groups([goes])[goes].result(30)
    commit(cluster, comes, topic, 10)
    reader.table.clear()
    service.start()
    wait_for("what is new is written", lambda: reader.find(comes, topic, 0))
    wait_for("what went is swept out", lambda: (goes, topic, 0) in reader.read())
    assert reader.table[goes, topic, 0] is None
    assert (stays, topic, 0) not in reader.table
