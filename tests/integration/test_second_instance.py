"""Two services with the same settings: one decides, the other stands by and takes over."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from caughtup.demo.cluster import EmbeddedCluster
from caughtup.demo.streams_app import StreamsApplication
from tests.support.service import Service, caughtup, wait_for

#: A member's session, and half as much again for a machine that is busy with other tests.
TAKEN_OVER_SECONDS = 15.0


@pytest.fixture(scope="module")
def application(cluster: EmbeddedCluster) -> Iterator[StreamsApplication]:
    with StreamsApplication(cluster, f"pair-{uuid.uuid4().hex[:8]}", partitions=2) as application:
        application.start_instance("a")
        yield application


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


def decisions(cluster: EmbeddedCluster, service: Service, group: str) -> Counter[int]:
    """Count a group's recommendations by generation, what compaction would drop included."""
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
            if record["group"] == group:
                found[record["generation"]] += 1
    finally:
        consumer.close()


def generation(service: Service, group: str) -> int | None:
    for view in service.page()["applications"]:
        if view["group"] == group:
            known: int = view["generation"]
            return known
    return None


def is_decided(cluster: EmbeddedCluster, service: Service, group: str) -> bool:
    """Tell whether there is a recommendation for the newest generation, and no later one came."""
    newest = generation(service, group)
    return newest in decisions(cluster, service, group) and newest == generation(service, group)


def test_one_decides_and_the_other_says_who_that_is(
    cluster: EmbeddedCluster, application: StreamsApplication, pair: tuple[Service, Service]
) -> None:
    first, second = pair
    group = application.application_id
    name = f":{first.process.pid}"
    assert f"{name} is active" in second.unready()
    assert f"{name} is active" in second.log
    assert (first.value("active"), second.value("active")) == (1, 0)
    for passing in ("b", "c"):
        application.start_instance(passing)
        application.stop_instance(passing)
    wait_for("all is decided", lambda: is_decided(cluster, first, group))
    wait_for(
        "the second has read it, too",
        lambda: generation(second, group) == generation(first, group),
    )
    assert set(decisions(cluster, first, group).values()) == {1}
    assert "caughtup_group" not in second.metrics_text()
    assert first.unready() == ""
    checked = caughtup(
        "check", "--config", first.settings_file, directory=cluster.processes.directory
    )
    assert f"{name} is active; standby: " in " ".join(checked.out.split()), checked.out


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_second_takes_over_when_the_first_has_gone(
    cluster: EmbeddedCluster,
    application: StreamsApplication,
    pair: tuple[Service, Service],
    end: str,
) -> None:
    first, second = pair
    group = application.application_id
    wait_for("all is decided", lambda: is_decided(cluster, first, group))
    before, newest = decisions(cluster, first, group), generation(first, group)
    began = time.monotonic()
    if end == "stop":
        assert first.stop() == 0
    else:
        first.kill()
    wait_for("the second is ready", second.ready, TAKEN_OVER_SECONDS)
    print(f"{time.monotonic() - began:.1f} s from the {end} until the second was ready")
    assert second.value("active") == 1
    second.wait_value(newest, "group_generation", group=group)
    assert decisions(cluster, first, group) == before
    passing = f"d-{end}"
    application.start_instance(passing)
    application.stop_instance(passing)
    wait_for("a later generation", lambda: generation(second, group) != newest)
    wait_for("all is decided", lambda: is_decided(cluster, second, group))
    assert set(decisions(cluster, second, group).values()) == {1}
    first.begin()
    wait_for("the first stands by", lambda: f":{second.process.pid} is active" in first.unready())
