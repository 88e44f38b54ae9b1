"""Incidents whose causes are around a group's members: brokers, reassignments, Connect, Kafka Streams."""

from __future__ import annotations

import time
import uuid
from typing import Any

from confluent_kafka import Producer

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.connect.workers import ConnectWorkers
from caughtup.demo.story.connect.play import file_sink
from caughtup.models.ids import TopicPartition
from tests.integration.simulation.topology import Table
from tests.support.groups.staged_incidents import (
    Incident,
    Scene,
    no_members,
    open_transaction,
    poll_interval_exceeded,
    slow_consumer,
)
from tests.support.kafka import quotas
from tests.support.service import wait_for

#: A cluster that outlives one of its brokers.
NODES = 3
BROKERS = {**quotas.BROKER, "transaction.state.log.replication.factor": "3"}
#: The second partition's only replica is on the broker that is lost; or each has three.
_ALONE = [[1], [0], [1], [1]]
_THREE = [[1, 2, 3]] * 4
#: What a reassignment copies of a partition, and how fast (bytes, bytes/s): it outlasts an incident.
_COPIED_BYTES, _COPY_RATE = 10_000_000, 50_000
_RECORD_BYTES = 50_000
#: The state of a Streams application in records, and how fast an instance restores it (bytes/s).
_STATE_RECORDS, _STATE_BYTES, _RESTORE_RATE = 20_000, 500, 30_000


class SinkScene(Scene):
    """A sink connector with two tasks, on one worker, that keeps up."""

    def begin(self) -> None:
        """Start the worker, and wait until the tasks keep up."""
        stage = self.stage
        connector = stage.group
        stage.group = f"connect-{connector}"
        three = {f"{of}.storage.replication.factor": "3" for of in ("config", "offset", "status")}
        workers = stage.running.enter_context(
            ConnectWorkers(
                stage.cluster,
                f"workers-{uuid.uuid4().hex[:8]}",
                max_delay_ms=3_000,
                properties={**three, "offset.flush.interval.ms": "1000"},
            )
        )
        workers.start("W1")
        workers.wait_healthy("W1")
        sink = file_sink(workers.directory / connector, stage.topics[0], tasks=2)
        converter = "org.apache.kafka.connect.json.JsonConverter"
        json = {"value.converter": converter, "value.converter.schemas.enable": "false"}
        workers.configure(connector, {**sink, **json})
        self.groups = [stage.group, workers.group]
        self.topics += [workers.config_topic, workers.offset_topic, workers.status_topic]
        stage.settle(2)


class StreamsScene(Scene):
    """An instance of a Streams application whose tasks have state; another may restore slowly."""

    def begin(self) -> None:
        """Start the instance, give it state, and wait until it keeps up."""
        stage = self.stage
        properties = {
            "num.standby.replicas": "0",
            "restore.consumer.max.partition.fetch.bytes": "16384",
            "restore.consumer.fetch.max.bytes": "16384",
            "restore.consumer.receive.buffer.bytes": "16384",
        }
        self.application = StreamsApplication(
            stage.cluster,
            stage.group,
            source=stage.topics[0],
            properties=properties,
        )
        self.application.topology = Table(self.application.source)
        stage.running.callback(self.application.close)
        self.one, self.two = (f"{stage.group}-{name}" for name in ("one", "two"))
        self.application.start_instance(self.one)
        produce(
            stage.cluster,
            stage.topics[0],
            _STATE_RECORDS,
            keys=_STATE_RECORDS,
            value_bytes=_STATE_BYTES,
        )
        java = self.application._instances[self.one]._gateway.jvm
        restores = {f"{self.two}-StateUpdater-1-restore-consumer": _RESTORE_RATE}
        quotas.limit_reading(java, stage.cluster.internal_bootstrap_servers, restores)
        stage.settle(1)
        wait_for("the application has read its source", self._has_read)

    def wants(self, topic: str) -> bool:
        return topic in self.topics or topic.startswith(f"{self.stage.group}-")

    def _has_read(self) -> bool:
        lag = self.stage.view().get("group", {}).get("lag")
        return lag is not None and int(lag) < 100


def broker_gone(scene: Scene) -> None:
    """A broker that is no controller is killed; it starts again when the incident is over."""
    cluster = scene.stage.cluster
    lost = scene.stage.lost
    cluster.kill_node(lost)
    scene.stage.running.callback(cluster.start_node, lost)


def reassignment(scene: Scene) -> None:
    """The second partition, with more data than before, moves to another broker at a throttled rate."""
    stage = scene.stage
    topic, cluster = stage.topics[0], stage.cluster
    producer = Producer(cluster.client_config())
    text = b'"' + b"x" * _RECORD_BYTES + b'"'  # JSON for converters
    for _ in range(_COPIED_BYTES // _RECORD_BYTES):
        producer.produce(topic, text, partition=1)
        producer.poll(0)
    producer.flush(60)
    time.sleep(3.0)  # the group reads it
    set_throttle(cluster, topic, _COPY_RATE)
    reassign, moved = reassigner(cluster.bootstrap_servers), TopicPartition(topic, 1)
    reassign(moved, [node for node in cluster.node_ids[1:] if node != stage.lost])
    stage.running.callback(clear_throttle, cluster, topic)
    stage.running.callback(reassign, moved, None)


def connect_task_failed(scene: SinkScene) -> None:
    """A record comes that the sink's converter can't read, on each partition: its tasks fail."""
    producer = Producer(scene.stage.cluster.client_config())
    for partition in range(4):
        producer.produce(scene.stage.topics[0], b"not JSON", partition=partition)
    producer.flush(30)


def restoring_tasks(scene: StreamsScene) -> None:
    """The only instance leaves, and another one without state takes over."""
    scene.application.start_instance(scene.two, wait=False)
    scene.application.stop_instance(scene.one)


def warmups_waiting(scene: StreamsScene) -> None:
    """A second instance joins, whose warm-ups are far behind."""
    scene.application.start_instance(scene.two, wait=False)


_LOST: dict[str, Any] = {"replicas": _ALONE}
_GONE = ("broker_gone", "no_leader")
_FAILED = ("connect_task_failed", "no_members")
#: Its only instance leaves, which is why tasks restore.
_RESTORING = ("recent_rebalance", "restoring_tasks")
AROUND: list[Incident] = [
    Incident((broker_gone,), **_LOST, kinds=_GONE),
    Incident((open_transaction, broker_gone), **_LOST, kinds=("open_transaction", *_GONE)),
    Incident((slow_consumer, broker_gone), **_LOST, kinds=("slow_consumer", *_GONE)),
    Incident(
        (poll_interval_exceeded, broker_gone), **_LOST, kinds=("poll_interval_exceeded", *_GONE)
    ),
    Incident((reassignment, broker_gone), **_LOST, kinds=("reassignment", *_GONE)),
    # These have no effect on what a group reads.
    Incident((reassignment,), **_LOST, kinds=("ok", "reassignment")),
    Incident((broker_gone, slow_consumer), replicas=_THREE, kinds=("slow_consumer", "broker_gone")),
    Incident((broker_gone, no_members), replicas=_THREE, kinds=("no_members", "broker_gone")),
    Incident((reassignment, slow_consumer), **_LOST),
    Incident((reassignment, open_transaction), **_LOST),
    Incident((connect_task_failed,), SinkScene, kinds=_FAILED),
    Incident((reassignment, connect_task_failed), SinkScene, _ALONE, ("reassignment", *_FAILED)),
    Incident((broker_gone, connect_task_failed), SinkScene, _ALONE, (*_GONE, *_FAILED)),
    Incident((restoring_tasks,), StreamsScene, kinds=_RESTORING),
    Incident((warmups_waiting,), StreamsScene, kinds=("ok", "warmups_waiting")),
    Incident(
        (reassignment, warmups_waiting),
        StreamsScene,
        _ALONE,
        ("ok", "reassignment", "warmups_waiting"),
    ),
    Incident((reassignment, restoring_tasks), StreamsScene, _ALONE, ("reassignment", *_RESTORING)),
    Incident((broker_gone, restoring_tasks), StreamsScene, _ALONE, (*_GONE, *_RESTORING)),
]
