"""An application with the follower, and a stand-in for the service's recommendations."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.records.topics import (
    APPLICATION_STATES,
    RECOMMENDATIONS,
    TASK_POSITIONS,
    with_prefix,
)
from tests.support.kafka.topics import read_topic

TOPICS = (RECOMMENDATIONS, APPLICATION_STATES, TASK_POSITIONS)
SECONDS = 150.0
#: The number of records in every application's state.
RECORDS = 6_000
#: Short enough that a test sees many rebalances.
FOLLOW_UP_MS = 500
FOLLOWER = {
    "task.assignor.class": "caughtup.FollowingTaskAssignor",
    "metric.reporters": "caughtup.PositionReporter",
    "caughtup.follow.up.ms": str(FOLLOW_UP_MS),
    "caughtup.positions.interval.ms": "200",
    "num.standby.replicas": "0",
    # Members learn of a rebalance from heartbeats.
    "heartbeat.interval.ms": "200",
    # Never reached: every rebalance requests another one.
    "caughtup.follow.ups": "1000000",
}


class Following(ClosedOnExit):
    """An application that follows, on topics of its own. A context manager."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        jar: Path,
        *,
        topics: Sequence[str] = TOPICS,
        topic_config: Mapping[str, str] | None = None,
        partitions: int = 3,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        name = uuid.uuid4().hex[:8]
        self.group = f"followed-{name}"
        self.prefix = f"cu-{name}-"
        self._cluster = cluster
        config = {"cleanup.policy": "compact", **(topic_config or {})}
        admin = AdminClient(cluster.client_config())
        wanted = [NewTopic(with_prefix(topic, self.prefix), 1, config=config) for topic in topics]
        for created in admin.create_topics(wanted).values() if wanted else ():
            created.result(30)
        self.application = StreamsApplication(
            cluster,
            self.group,
            partitions=partitions,
            class_path=[jar],
            properties={**FOLLOWER, "caughtup.topic.prefix": self.prefix, **(properties or {})},
        )
        self.application.create_source()
        self._producer = Producer({**cluster.client_config(), "linger.ms": 0})
        self._states: list[dict[str, Any]] = []
        self._consumer: Consumer | None = None

    def publish(
        self,
        record: Any,
        *,
        key: str | None = None,
        timestamp_ms: int = 0,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        """Write a recommendation: a record, raw bytes, or None for a tombstone."""
        value = record if record is None or isinstance(record, bytes) else json.dumps(record)
        self._producer.produce(
            with_prefix(RECOMMENDATIONS, self.prefix),
            value,
            key or self.group,
            timestamp=timestamp_ms,
            headers=dict(headers or {}),
        )
        assert self._producer.flush(30) == 0

    def publish_bomb(self, size: int) -> None:
        """Write a batch of a few KB that decompresses to ``size`` bytes."""
        write_bomb(self._cluster, with_prefix(RECOMMENDATIONS, self.prefix), self.group, size)

    def states(self) -> list[dict[str, Any]]:
        """Return every state that the application has published."""
        if self._consumer is None:
            self._consumer = read_topic(self._cluster, with_prefix(APPLICATION_STATES, self.prefix))
        while messages := self._consumer.consume(100, timeout=0.05):
            self._states += [json.loads(m.value()) for m in messages if m.error() is None]
        return self._states

    def wait_state(
        self, what: str, wanted: Callable[[dict[str, Any]], object], *, after: int | None = None
    ) -> dict[str, Any]:
        """Wait for a published state that is not among ``after``."""
        first = after or 0
        deadline = time.monotonic() + SECONDS
        while True:
            for state in self.states()[first:]:
                if wanted(state):
                    return state
            if time.monotonic() > deadline:
                seen = [state["outcome"]["message"] for state in self._states[-5:]]
                raise AssertionError(f"{what}: not in {SECONDS} s; last: {seen}")

    def wait_reason(self, reason: str) -> dict[str, Any]:
        """Wait for a later rebalance with this reason."""
        return self.wait_state(
            reason, lambda s: s["outcome"]["reason"] == reason, after=len(self.states())
        )

    def log(self, name: str) -> str:
        return self.application._instances[name].process.output()

    def wait_log(self, name: str, text: str) -> None:
        """Wait until an instance's log has this text."""
        deadline = time.monotonic() + SECONDS
        while text not in self.log(name):
            assert time.monotonic() < deadline, f"{name} did not write: {text}"
            time.sleep(0.1)

    def close(self) -> None:
        self.application.close()
        if self._consumer is not None:
            self._consumer.close()


def start_with_state(cluster: EmbeddedCluster, following: Following, *names: str) -> None:
    """Start all instances at once, and write records for their state."""
    for name in names:
        following.application.start_instance(name, wait=False)
    for name in names:
        following.application.wait_running(name)
    produce(cluster, following.application.source, RECORDS, keys=600)
    following.application.wait_caught_up()


def assert_nothing_failed(following: Following, *names: str) -> None:
    """Assert that every instance runs and none was ever in an error state."""
    for name in names:
        following.application.wait_running(name)
        log = following.log(name)
        assert "State transition from REBALANCING to ERROR" not in log
        assert "PENDING_ERROR" not in log
        assert " ERROR " not in log


def newest(following: Following) -> dict[str, Any]:
    """Wait for the state of the next rebalance."""
    count = len(following.states())
    return following.wait_state("another rebalance", lambda _: True, after=count)


def write_bomb(cluster: EmbeddedCluster, topic: str, key: str, size: int) -> None:
    """Write a record of this size, which compresses to a thousandth."""
    limits = {"message.max.bytes": size + 1_000, "queue.buffering.max.kbytes": 1 << 20}
    producer = Producer({**cluster.client_config(), **limits, "compression.type": "gzip"})
    producer.produce(topic, bytes(size), key)
    assert producer.flush(60) == 0


def scenario_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Make a scenario of a published state; lags that it leaves out are the greatest."""
    greatest = state["greatest_lags"]
    return {
        "name": state["group"],
        "assignor": "minimal_movement",
        "config": state["config"],
        "tasks": {task: {"stateful": info["stateful"]} for task, info in state["tasks"].items()},
        "clients": {
            process: {
                "capacity": client["capacity"],
                "previous_active": client["previous_active"],
                "previous_standby": client["previous_standby"],
                "lags": {**greatest, **client["lags"]},
            }
            for process, client in state["clients"].items()
        },
    }


def recommend(state: Mapping[str, Any], *, decided_at_ms: int | None = None) -> dict[str, Any]:
    """Return caughtup's recommendation for a published state."""
    scenario = scenario_of(state)
    decision = decide(parse_scenario(scenario)).to_dict()
    now = int(time.time() * 1000) if decided_at_ms is None else decided_at_ms
    return {
        "schema": 1,
        "decision_id": uuid.uuid4().hex,
        "group": state["group"],
        "process_ids": sorted(scenario["clients"]),
        "decided_at_ms": now,
        "assignment": decision["clients"],
        "probing_rebalance": {
            "needed": decision["probing_rebalance_needed"],
            "worthwhile_at_ms": now + FOLLOW_UP_MS,
        },
        "inputs": {"scenario": scenario},
    }
