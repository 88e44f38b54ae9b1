"""A Connect worker cluster applied to a state: its group's records and its workers' topics."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from caughtup.agents.connect.reader import apply_records
from caughtup.agents.connect.watcher import decide_due
from caughtup.agents.topics.consumer import ConsumerRecord
from caughtup.models.connect.work import written
from caughtup.models.connect_clusters.table import PATIENCE_MS
from caughtup.models.connect_clusters.topic_sets import TopicSet
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import decode_batch
from caughtup.models.records.fields import json_values
from caughtup.models.shown.connect import connect_lines
from caughtup.models.state.cluster import ClusterState
from tests.support import wire
from tests.support.connect.playing import GROUP, Group
from tests.support.groups.records import commit

TOPICS = TopicSet("connect-configs", "connect-status", "connect-offsets")


class WorkerCluster:
    """A simulated group with the topics of its workers, applied to a state."""

    def __init__(
        self,
        group: Group,
        state: ClusterState | None = None,
        name: str = GROUP,
        topics: TopicSet = TOPICS,
    ) -> None:
        self.group = group
        self.name = name
        self.topics = topics
        self.state = state or ClusterState("cluster-1", {})
        self.state.connect.read_topics({*self.state.connect.topics, topics})
        self.state.connect.looked = True
        self._offset = 0

    def configure(self, connector: str, tasks: int, **properties: str) -> None:
        """Write a connector's configuration and its tasks', and update the simulated group."""
        config = {"connector.class": "FileStreamSource", "tasks.max": str(tasks), **properties}
        self.config(f"connector-{connector}", {"properties": config})
        for task in range(tasks):
            self.config(f"task-{connector}-{task}", {"properties": {"secret": "hunter2"}})
        self.config(f"commit-{connector}", {"tasks": tasks})
        self.group.connectors[connector] = tasks

    def delete(self, connector: str) -> None:
        self.config(f"connector-{connector}", None)
        self.group.connectors.pop(connector, None)

    def config(self, key: str, value: Any) -> None:
        self.raw(self.topics.config, key.encode(), value, self._offset)
        self._offset += 1
        self.group.config_offset = self._offset

    def status(
        self, name: str, state: str, worker: str, generation: int | None = None, trace: str = ""
    ) -> None:
        kind = "task" if name.rpartition("-")[2].isdecimal() else "connector"
        value = {
            "state": state,
            "trace": trace or None,
            "worker_id": f"{worker.lower()}:8083",
            "generation": self.group.generation if generation is None else generation,
        }
        self.raw(self.topics.status, f"status-{kind}-{name}".encode(), value)

    def source_offset(self, connector: str, partition: str = "a") -> None:
        key = json.dumps([connector, {"file": partition}]).encode()
        self.raw(self.topics.offset, key, {"position": 7})

    def raw(self, topic: str, key: bytes | None, value: Any, offset: int = -1) -> None:
        encoded = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        record = ConsumerRecord(key, encoded, self.group.now_ms, True, offset)
        apply_records(self.state, topic, [record])

    def round(self, after_ms: int = 10, *, decide: bool = True) -> None:
        """Complete a rebalance, and report all assigned work as RUNNING."""
        self.group.now_ms += after_ms
        self.group.round()
        self.read(self.group.value)
        if decide:
            self.decide()

    def read(self, value: bytes | None) -> None:
        batch = decode_batch([(wire.group_key(self.name), value)])
        self.state.apply_batch(batch, self.group.now_ms)

    def decide(self) -> None:
        decide_due(self.state, self.group.now_ms + PATIENCE_MS)

    def run(self, workers: Iterable[str] | None = None) -> None:
        """Report all work of these workers as RUNNING."""
        for worker in workers or self.group.members:
            for name in written(self.group.owned[worker]):
                self.status(name, "RUNNING", worker)

    def lines(self, kind: str, after_ms: int = 0) -> list[dict[str, Any]]:
        now_ms = self.group.now_ms + after_ms
        found = map(json_values, connect_lines(self.state, self.name, now_ms))
        return [one for one in found if one["kind"] == kind]

    def contradictions(self, after_ms: int = 0) -> list[tuple[str, str, str]]:
        return [
            (one["contradiction"], one["name"], one.get("worker", ""))
            for one in self.lines("contradiction", after_ms)
        ]


def settled(**more: Any) -> WorkerCluster:
    """Return a stable worker cluster: three workers, A with two tasks and B with one, all running."""
    cluster = WorkerCluster(Group({}), **more)
    cluster.configure("A", 2)
    cluster.configure("B", 1)
    cluster.group.join("W1", "W2", "W3")
    cluster.round()
    cluster.run()
    return cluster


def stormy(now_ms: int) -> WorkerCluster:
    """Return a cluster with a failed task and a worker, W3, that leaves repeatedly and is away."""
    cluster = settled()
    cluster.group.now_ms = now_ms
    cluster.configure("sink", 1, topics="orders")
    cluster.round()
    cluster.run()
    cluster.source_offset("A")
    orders = TopicPartition("orders", 0)
    cluster.state.apply_ends(orders, EndOffsets(0, 9, 9, cluster.group.now_ms))
    batch = decode_batch([commit(0, 7, topic="orders", group="connect-sink")])
    cluster.state.apply_batch(batch, cluster.group.now_ms)
    for _ in range(3):
        if "W3" not in cluster.group.members:
            cluster.group.join("W3")
        cluster.round()
        cluster.group.leave("W3")
        cluster.round()
    failed = written(cluster.group.owned["W1"])[-1]
    cluster.status(failed, "FAILED", "W1")
    return cluster
