"""What happens to Connect clusters: named within a second of being in the log, or rightly not named."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Producer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics, read_topic
from caughtup.demo.connect.workers import ConnectWorkers
from caughtup.demo.story.connect.play import file_sink, file_source
from tests.support.service import Service, wait_for

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]

#: A worker that is restarted is back by then, on a busy machine, too.
MAX_DELAY_MS = 20_000
#: How long the service waits for a round that is due before it says that it is late.
GRACE_MS = 5_000
NAMES = ("W1", "W2", "W3")
EVERYTHING = ["A", "A-0", "A-1", "B", "B-0"]
Lines = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def workers(cluster: EmbeddedCluster, service: Service, make_workers) -> ConnectWorkers:
    """Three workers at rest, with a sink of two tasks and a source of one."""
    found: ConnectWorkers = make_workers(max_delay_ms=MAX_DELAY_MS)
    with_connectors(cluster, found, *NAMES)
    wait_for("the group is at rest", lambda: at_rest(service, found, 3))
    return found


def with_connectors(cluster: EmbeddedCluster, workers: ConnectWorkers, *names: str) -> None:
    """Start workers and give them a sink of two tasks and a source of one."""
    topic = f"{workers.group}-lines"
    create_topics(cluster, {topic: 2})
    lines = workers.directory / f"{topic}-in"
    lines.write_text("".join(f"line {number}\n" for number in range(100)))
    workers.start(*names)
    workers.wait_healthy(*names)
    workers.configure("A", file_sink(workers.directory / f"{topic}-out", topic, tasks=2))
    workers.configure("B", file_source(lines, topic))


def at_rest(service: Service, workers: ConnectWorkers, count: int) -> Lines | None:
    """Return the group's lines if so many workers run all that is configured, and nothing is due."""
    lines = service.connect(workers.group)
    running = lines.get("worker", [])
    rest = (
        len(running) == count
        and sorted(name for one in running for name in items(one)) == EVERYTHING
        and not lines.get("unassigned")
        and not lines.get("contradiction")
        and "next_rebalance_ms" not in lines["group"][0]
        and [one.get("state") for one in lines.get("connector", [])] == ["RUNNING"] * 2
    )
    return lines if rest else None


def items(worker: dict[str, Any]) -> list[str]:
    """Return what a worker has."""
    return [*worker["connectors"], *worker["tasks"]]


def named(service: Service, workers: ConnectWorkers, kind: str) -> dict[str, int] | None:
    """Return what of a kind is named by now, and when that is (ms)."""
    contradictions = service.connect(workers.group).get("contradiction", [])
    now_ms = int(time.time() * 1000)
    return {one["name"]: now_ms for one in contradictions if one["contradiction"] == kind} or None


@contextmanager
def alarms(service: Service, workers: ConnectWorkers) -> Iterator[list[str]]:
    """Collect what alerts would be made of, scraped five times a second meanwhile."""
    found: list[str] = []
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(0.2):
            for sample in service.metrics():
                alarming = sample.name in (
                    "caughtup_connect_contradiction",
                    "caughtup_connect_storm_generations",
                )
                # What doesn't run yet is starting, on a busy machine; its alert waits five minutes.
                starting = sample.labels.get("kind") == "not_running"
                if alarming and not starting and sample.labels["group"] == workers.group:
                    found.append(f"{sample.name} {sample.labels}")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()


def test_a_rolling_restart_that_comes_back_in_time_alarms_nobody(
    service: Service, workers: ConnectWorkers
) -> None:
    lines = wait_for("the group is at rest", lambda: at_rest(service, workers, 3))
    # The leader last: its work is dealt at once, and nobody waits for it to come back.
    order = [one["client_id"] for one in sorted(lines["worker"], key=lambda one: one["leader"])]
    with alarms(service, workers) as found:
        for name in order:
            workers.leave(name)
            workers.start_together(name)
            wait_for(f"all is as it was without {name}", lambda: at_rest(service, workers, 3))
    assert found == []
    (group,) = service.connect(workers.group)["group"]
    assert {one["result"] for one in group["history"]} == {"match"}, group["history"]
    # On a busy machine a session may end beside those of who is restarted.
    outcomes = [one["outcome"] for one in group["absences"]]
    assert outcomes.count("in_time") >= 2, group["absences"]


def test_a_task_that_fails_is_named_within_a_second(
    cluster: EmbeddedCluster, service: Service, workers: ConnectWorkers
) -> None:
    topic = f"{workers.group}-json"
    create_topics(cluster, {topic: 1})
    wanted = file_sink(workers.directory / topic, topic, tasks=1)
    strict = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    workers.configure("strict", {**wanted, **strict})
    wait_for("its task runs", lambda: _states(workers, "strict") == ["RUNNING"])

    producer = Producer(cluster.client_config())
    producer.produce(topic, b"not JSON")
    producer.flush(30)

    found = wait_for("its task has failed", lambda: named(service, workers, "failed"))
    in_log_ms = _newest(cluster, workers.status_topic, "status-task-strict-0", "FAILED")
    print(f"a failed task: {found['strict-0'] - in_log_ms} ms after its status was in the log")
    assert found.keys() == {"strict-0"}
    assert found["strict-0"] - in_log_ms < 1_000
    assert _states(workers, "strict") == ["FAILED"]
    workers.ask("it is deleted", lambda rest: rest.delete("strict"))
    wait_for("nothing is left of it", lambda: at_rest(service, workers, 3))


def test_a_zombie_is_named_within_a_second_of_the_generation_without_it(
    service: Service, workers: ConnectWorkers, follow
) -> None:
    lines = wait_for("the group is at rest", lambda: at_rest(service, workers, 3))
    victim = next(one for one in lines["worker"] if not one["leader"] and one["connectors"])
    log, last = follow(workers), lines["group"][0]["generation"]
    workers[victim["client_id"]].suspend()
    try:
        found = wait_for("it is a zombie", lambda: named(service, workers, "zombie"))
        first = log.wait("two remain", lambda one: len(one.names) == 2, 30, since=last + 1)
    finally:
        workers[victim["client_id"]].resume()
    after_ms = max(found.values()) - first.written_ms
    print(f"a zombie: {after_ms} ms after the generation without it was in the log")
    assert sorted(found) == sorted(items(victim))
    assert after_ms < 1_000
    wait_for("all is as it was", lambda: at_rest(service, workers, 3))


def test_what_nobody_has_past_its_delay_is_named_within_a_second(
    cluster: EmbeddedCluster, service: Service, make_workers
) -> None:
    # Its leader stands still when the delay is over, and isn't missed before its session is.
    workers: ConnectWorkers = make_workers(
        max_delay_ms=4_000, properties={"session.timeout.ms": "30000"}
    )
    with_connectors(cluster, workers, "W1", "W2")
    lines = wait_for("the group is at rest", lambda: at_rest(service, workers, 2))
    follower = next(one for one in lines["worker"] if not one["leader"])
    (leader,) = {"W1", "W2"} - {follower["client_id"]}
    lost = sorted(items(follower))
    workers.leave(follower["client_id"])
    due_ms = wait_for("its work waits", _due(service, workers))
    workers[leader].suspend()
    try:
        found = wait_for("it is past its delay", lambda: named(service, workers, "unassigned"))
    finally:
        workers[leader].resume()
    after_ms = max(found.values()) - (due_ms + GRACE_MS)
    print(f"past its delay: {after_ms} ms after {GRACE_MS} ms of grace")
    assert sorted(found) == lost
    assert 0 <= after_ms < 1_000
    wait_for("the leader deals it", lambda: at_rest(service, workers, 1))


def _due(service: Service, workers: ConnectWorkers) -> Callable[[], int | None]:
    def ask() -> int | None:
        waiting = service.connect(workers.group).get("unassigned", [])
        return max((one["at_ms"] for one in waiting if "at_ms" in one), default=None)

    return ask


def _states(workers: ConnectWorkers, connector: str) -> list[str]:
    client = workers[workers.names[0]].rest
    if connector not in client.connectors():
        return []
    return [task["state"] for task in client.status(connector)["tasks"]]


def _newest(cluster: EmbeddedCluster, topic: str, key: str, state: str) -> int:
    """Return when (ms) the first status of a state was written."""
    records = read_topic(cluster, topic)
    times = [
        one.timestamp_ms
        for one in records
        if one.key == key.encode() and one.value and json.loads(one.value)["state"] == state
    ]
    return min(times)
