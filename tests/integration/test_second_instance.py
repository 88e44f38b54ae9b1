"""Two services with the same settings: one decides, the other stands by and takes over."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from caughtup.demo.cluster import EmbeddedCluster
from caughtup.demo.offset_commits import offsets_partition
from tests.support.service import Service, caughtup, wait_for
from tests.support.streams import Member, generation

#: A member's session, and more for a machine that is busy with other tests.
TAKEN_OVER_SECONDS = 20.0


class Application:
    """A Streams application as its group's records tell of it: generation after generation."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.group = f"pair-{uuid.uuid4().hex[:8]}"
        self.generation = 0
        # Brokers let nobody else produce to an internal topic.
        self._producer = Producer({**cluster.client_config(), "client.id": "__admin_client"})
        partitions = self._producer.list_topics("__consumer_offsets").topics["__consumer_offsets"]
        self._partition = offsets_partition(self.group, len(partitions.partitions))

    def rebalance(self, times: int = 1) -> None:
        """Have two members swap their tasks so many times."""
        for _ in range(times):
            self.generation += 1
            tasks = ["0_0", "0_1"][:: 1 if self.generation % 2 else -1]
            members = [Member(name, n, active=(tasks[n],)) for n, name in enumerate("ab")]
            now = int(time.time() * 1000)
            key, value = generation(self.generation, *members, group=self.group, at_ms=now)
            self._producer.produce("__consumer_offsets", value, key, partition=self._partition)
            assert self._producer.flush(30) == 0


@pytest.fixture
def pair(cluster: EmbeddedCluster) -> Iterator[tuple[Service, Service]]:
    """An active service and one that stands by."""
    own = f"caughtup-{uuid.uuid4().hex[:8]}"
    first, second = (Service(cluster, application_id=own) for _ in range(2))
    with first:
        second.begin()
        try:
            wait_for("the second stands by", lambda: "is active" in second.unready())
            yield first, second
        finally:
            second.process.terminate(10)


@pytest.fixture
def application(cluster: EmbeddedCluster, pair: tuple[Service, Service]) -> Application:
    application = Application(cluster)
    application.rebalance()
    wait_for("it is decided", lambda: decisions(cluster, pair[0], application) == {1: 1})
    return application


def decisions(cluster: EmbeddedCluster, service: Service, application: Application) -> Counter[int]:
    """Count the recommendations by generation, what compaction would drop included."""
    topic = service.topic("recommended-assignments")
    consumer = Consumer(
        {**cluster.client_config(), "group.id": "looks-only", "enable.partition.eof": True}
    )
    found: Counter[int] = Counter()
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while True:
            message = wait_for("a record or the end", lambda: consumer.poll(0.5))
            if message.error():
                return found
            record = json.loads(message.value() or b"")
            if record["group"] == application.group:
                found[record["generation"]] += 1
    finally:
        consumer.close()


def known(service: Service, application: Application) -> int | None:
    """Give the newest generation that a service has read."""
    for view in service.page()["applications"]:
        if view["group"] == application.group:
            read: int = view["generation"]
            return read
    return None


def test_one_decides_and_the_other_says_who_that_is(
    cluster: EmbeddedCluster, application: Application, pair: tuple[Service, Service]
) -> None:
    first, second = pair
    name = f":{first.process.pid}"
    assert f"{name} is active" in second.unready()
    assert f"{name} is active" in second.log
    assert (first.value("active"), second.value("active")) == (1, 0)
    application.rebalance(9)
    wait_for("all is decided", lambda: len(decisions(cluster, first, application)) == 10)
    wait_for("the second has read it, too", lambda: known(second, application) == 10)
    assert set(decisions(cluster, first, application).values()) == {1}
    assert "caughtup_group" not in second.metrics_text()
    assert first.unready() == ""
    directory = cluster.processes.directory
    checked = caughtup("check", "--config", first.settings_file, directory=directory)
    assert f"{name} is active; standby: " in " ".join(checked.out.split()), checked.out


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_second_takes_over_when_the_first_has_gone(
    cluster: EmbeddedCluster,
    application: Application,
    pair: tuple[Service, Service],
    end: str,
) -> None:
    first, second = pair
    application.rebalance(5)
    began = time.monotonic()
    if end == "stop":
        assert first.stop() == 0
    else:
        first.kill()
    wait_for("the second is ready", second.ready, TAKEN_OVER_SECONDS)
    print(f"{time.monotonic() - began:.1f} s from the {end} until the second was ready")
    assert second.value("active") == 1
    wait_for("the newest is decided", lambda: 6 in decisions(cluster, second, application))
    application.rebalance()
    wait_for("the next is decided", lambda: 7 in decisions(cluster, second, application))
    second.wait_value(7, "group_generation", group=application.group)
    assert set(decisions(cluster, second, application).values()) == {1}
    first.begin()
    wait_for("the first stands by", lambda: f":{second.process.pid} is active" in first.unready())
