"""Brokers and the service itself go and come back: nothing is lost, nothing is published twice."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from tests.support.kafka.topics import whole_topic, words_read
from tests.support.service import Service, commit, wait_for
from tests.support.sizes import daily

pytestmark = pytest.mark.heavy

#: How often the service is killed, each time while the application rebalances.
KILLS = daily(1, 3)
Published = Counter[tuple[str, int]]


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    """Two nodes, of which the second may be killed: the first is the only controller."""
    with EmbeddedCluster(nodes=2) as cluster:
        words_read(cluster, 10, 1)
        yield cluster


@pytest.fixture(scope="module")
def application(brokers: EmbeddedCluster) -> Iterator[StreamsApplication]:
    """Two instances with state, through at least two generations."""
    with StreamsApplication(brokers, "orders", partitions=2) as application:
        application.start_instance("a")
        produce(brokers, application.source, 1_000)
        application.start_instance("b")
        application.wait_caught_up()
        yield application


@pytest.fixture(scope="module")
def service(brokers: EmbeddedCluster, application: StreamsApplication) -> Iterator[Service]:
    with Service(brokers) as service:
        yield service


def records(cluster: EmbeddedCluster, topic: str) -> list[dict[str, Any]]:
    """Read a topic of one partition to its end, what compaction would drop included."""
    return [msgspec.json.decode(message.value() or b"") for message in whole_topic(cluster, topic)]


def published(cluster: EmbeddedCluster, service: Service) -> Published:
    """Count the recommendations by group and generation."""
    topic = service.topic("recommended-assignments")
    return Counter((r["group"], r["generation"]) for r in records(cluster, topic))


def decided(service: Service) -> int | None:
    """Return the application's newest generation once it is decided."""
    for view in service.page()["applications"]:
        if view["group"] == "orders" and view.get("recommendation"):
            known: int = view["recommendation"].get("generation", view["generation"])
            return known if known == view["generation"] else None
    return None


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.thorough
def test_a_restart_publishes_nothing_twice(
    brokers: EmbeddedCluster, service: Service, end: str
) -> None:
    generation = wait_for("a recommendation", lambda: decided(service))
    before = published(brokers, service)
    moved = len(records(brokers, service.topic("movements")))
    assert before[("orders", generation)] == 1
    if end == "stop":
        assert service.stop() == 0
    else:
        service.kill()
    service.start()
    assert wait_for("the recommendation is known", lambda: decided(service)) == generation
    # What is published comes after end offsets are listed again, if it comes at all.
    wait_for("lag", lambda: service.value("group_lag_records", group="readers") is not None)
    assert published(brokers, service) == before
    assert len(records(brokers, service.topic("movements"))) == moved


def test_killed_at_random_moments_it_tells_every_decision_and_movement_once(
    brokers: EmbeddedCluster, application: StreamsApplication, service: Service
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    for number in range(KILLS):
        application.start_instance(f"passing-{number}", wait=False)
        time.sleep(moments.uniform(0, 6))
        service.kill()
        application.stop_instance(f"passing-{number}")
        service.start()
    generation = wait_for("the newest generation is decided", lambda: decided(service))
    wait_for("its movements are told", lambda: is_told(brokers, service))
    ids = Counter(
        (r["group"], r["decision_id"])
        for r in records(brokers, service.topic("recommended-assignments"))
    )
    assert set(ids.values()) == {1}
    assert published(brokers, service)[("orders", generation)] >= 1
    events = Counter(
        (e["plan"], e["decision_id"], e["event"], e["task"], e["to"])
        for e in records(brokers, service.topic("movements"))
    )
    assert set(events.values()) <= {1}


def is_told(cluster: EmbeddedCluster, service: Service) -> bool:
    """Return whether just the movements of the last recommendation are under way or done.

    One of an earlier recommendation may have been promoted with the last.
    """
    last = records(cluster, service.topic("recommended-assignments"))[-1]
    ways: dict[tuple[str, str], dict[str, Any]] = {}
    for event in records(cluster, service.topic("movements")):
        if event["plan"] == "recommended":
            ways[event["task"], event["to"]] = event
    going = {way for way, event in ways.items() if event["event"] in ("planned", "warming")}
    arrived = {
        way
        for way, event in ways.items()
        if event["event"] == "promoted" and event["decision_id"] == last["decision_id"]
    }
    planned = {(movement["task"], movement["to"]) for movement in last["movements"]}
    return going <= planned <= going | arrived


def cpu_seconds(service: Service) -> float:
    """Return the CPU time of the service's process so far, the system's part included."""
    stat = Path(f"/proc/{service.process.pid}/stat").read_text()
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_a_broker_may_die_and_come_back_under_the_service(
    brokers: EmbeddedCluster, application: StreamsApplication, service: Service
) -> None:
    wait_for("a recommendation", lambda: decided(service))
    brokers.kill_node(2)
    began, used = time.monotonic(), cpu_seconds(service)
    brokers.wait_ready()
    commit(brokers, "readers", "words", 5)
    # Clients that looked for another connection without a pause took a core and a half.
    assert cpu_seconds(service) - used < 0.75 * (time.monotonic() - began)
    service.wait_value(5, "group_committed_offset", group="readers")
    wait_for("the service is ready again", service.ready)
    brokers.start_node(2)
    commit(brokers, "readers", "words", 6)
    service.wait_value(6, "group_committed_offset", group="readers")
    produce(brokers, "words", 3)
    ends = {"topic": "words", "isolation": "read_committed"}
    wait_for("end offsets go on", lambda: service.value("partition_end_offset", **ends) >= 13)
    wait_for("the service is ready again", service.ready)
    assert "Traceback" not in service.log
    twice = {key: n for key, n in published(brokers, service).items() if n > 1}
    assert twice == {}
