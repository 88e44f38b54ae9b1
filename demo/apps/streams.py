"""A real Kafka Streams application, instance by instance."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from caughtup.demo.apps.instance import StoreLag, StreamsFailed, StreamsInstance, StreamThreadInfo
from caughtup.demo.apps.restore_listener import RestoredCopy
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView

RUNNING_SECONDS = 120.0
_POLL_SECONDS = 0.05
_ASSIGNOR_CONFIGS = (
    "acceptable.recovery.lag",
    "max.warmup.replicas",
    "num.standby.replicas",
    "probing.rebalance.interval.ms",
)
_STRING_SERDE = "org.apache.kafka.common.serialization.Serdes$StringSerde"
_DEFAULTS = {
    "acceptable.recovery.lag": "10",
    "max.warmup.replicas": "2",
    "num.standby.replicas": "1",
    # The least that Kafka accepts.
    "probing.rebalance.interval.ms": "60000",
    "commit.interval.ms": "200",
    "default.key.serde": _STRING_SERDE,
    "default.value.serde": _STRING_SERDE,
    "num.stream.threads": "1",
    "statestore.cache.max.bytes": "0",
    # A killed instance is removed after 10 s.
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "2000",
    "consumer.auto.offset.reset": "earliest",
    "topology.optimization": "none",
}


class OrdersTopology(NamedTuple):
    """Two stateful subtopologies with a repartition between them.

    Subtopology 0 keeps the latest value of each key of the source topic; subtopology 1 counts the
    updates by key. Only operations that take no function are used: a function would have to be a
    Java class, or a call back into Python for every record.
    """

    source: str
    latest_store: str = "latest"
    repartition: str = "by-customer"
    counts_store: str = "counts"

    def build(self, java: JVMView) -> JavaObject:
        """Return an ``org.apache.kafka.streams.Topology`` in the JVM of a py4j gateway.

        Optimisation stays off, so that the table has a changelog of its own and is not restored
        from the source topic.
        """
        streams = java.org.apache.kafka.streams
        strings = java.org.apache.kafka.common.serialization.Serdes.String
        # "as" and "with" are keywords in Python.
        materialized_as = getattr(streams.kstream.Materialized, "as")
        consumed_with = getattr(streams.kstream.Consumed, "with")
        repartitioned_as = getattr(streams.kstream.Repartitioned, "as")
        builder = streams.StreamsBuilder()
        (
            builder.table(
                self.source,
                consumed_with(strings(), strings()),
                materialized_as(self.latest_store),
            )
            .toStream()
            .repartition(
                repartitioned_as(self.repartition).withKeySerde(strings()).withValueSerde(strings())
            )
            .groupByKey()
            .count(materialized_as(self.counts_store))
        )
        return builder.build()

    def changelogs(self, application_id: str) -> dict[int, tuple[str, ...]]:
        """Return the changelog topics of each subtopology."""
        return {
            0: (f"{application_id}-{self.latest_store}-changelog",),
            1: (f"{application_id}-{self.counts_store}-changelog",),
        }


class StreamsApplication(ClosedOnExit):
    """An application whose instances, each a JVM of its own, are started and ended by name.

    A context manager: entering creates the source topic, leaving ends every instance. The
    instances end with the cluster's processes in any case. An instance's state stays on disk while
    the cluster lives, so that one started again under its old name has its process id and its
    state again. ``properties`` adds to, and overrides, the application's configuration;
    ``class_path`` has the classes that it names.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        application_id: str = "orders",
        *,
        source: str | None = None,
        partitions: int = 6,
        properties: Mapping[str, str] | None = None,
        class_path: Sequence[Path] = (),
    ) -> None:
        self.application_id = application_id
        self.topology = OrdersTopology(source or f"{application_id}-placed")
        self._cluster = cluster
        self._partitions = partitions
        self._class_path = tuple(class_path)
        self._properties = {**_DEFAULTS, **(properties or {})}
        self._instances: dict[str, StreamsInstance] = {}

    @property
    def source(self) -> str:
        """The topic that the application reads."""
        return self.topology.source

    @property
    def instances(self) -> tuple[str, ...]:
        """The names of the instances that run."""
        return tuple(sorted(self._instances))

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The ``applications`` table of caughtup's settings file for this application.

        The assignor's configs under Kafka's names, and ``changelogs``: subtopology to topics.
        """
        configs = {name: int(self._properties[name]) for name in _ASSIGNOR_CONFIGS}
        changelogs = self.topology.changelogs(self.application_id)
        return {self.application_id: {**configs, "changelogs": changelogs}}

    def create_source(self) -> None:
        """Create the source topic. Raises CaughtupError ``topic_failed``."""
        create_topics(self._cluster, {self.source: self._partitions})

    def start_instance(self, name: str, *, wait: bool = True) -> None:
        """Start an instance and, unless ``wait`` is False, wait until it is RUNNING.

        Raises StreamsFailed.
        """
        if name in self._instances:
            raise CaughtupError("bad_instance", f"instance {name} is running already")
        directory = self._cluster.processes.directory / f"{self.application_id}-{name}"
        properties = {
            "application.id": self.application_id,
            # The internal listener, since the client listener may need credentials.
            "bootstrap.servers": self._cluster.internal_bootstrap_servers,
            "client.id": name,
            "state.dir": str(directory / "state"),
            **self._properties,
        }
        self._instances[name] = StreamsInstance(
            name, self._cluster.processes, properties, self.topology.build, self._class_path
        )
        if wait:
            self.wait_running(name)

    def stop_instance(self, name: str) -> None:
        """Close an instance cleanly; it leaves its group, so the others take over at once."""
        self._instance(name)
        self._instances.pop(name).close()

    def kill_instance(self, name: str) -> None:
        """End an instance with SIGKILL; the others take over after the session timeout."""
        self._instance(name)
        self._instances.pop(name).kill()

    def state(self, name: str) -> str:
        """Return an instance's KafkaStreams state, such as RUNNING or REBALANCING."""
        return self._instance(name).state

    def process_id(self, name: str) -> ProcessId:
        """Return an instance's process id in its group."""
        return self._instance(name).process_id

    def lags(self, name: str) -> dict[str, dict[int, StoreLag]]:
        """Return the lags of an instance's copies, by store and partition."""
        return self._instance(name).lags()

    def threads(self, name: str) -> dict[str, StreamThreadInfo]:
        """Return an instance's stream threads with their active and standby tasks."""
        return self._instance(name).threads()

    def restored(self, name: str) -> tuple[RestoredCopy, ...]:
        """Return every copy that an instance started to restore so far, in that order."""
        return self._instance(name).restored()

    def tasks_on_disk(self, name: str) -> frozenset[TaskId]:
        """Return the tasks that have a directory on an instance's disk, assigned or not."""
        return self._instance(name).tasks_on_disk()

    def subtopology_stores(self, name: str) -> dict[int, tuple[str, ...]]:
        """Return the stores of each subtopology, from an instance's topology."""
        return self._instance(name).topology_stores()

    def wait_running(self, name: str, timeout_seconds: float = RUNNING_SECONDS) -> None:
        """Wait until an instance is RUNNING. Raises StreamsFailed."""
        instance = self._instance(name)

        def running() -> bool:
            state = instance.state
            if state in ("ERROR", "NOT_RUNNING"):
                error = instance.process.first_error()
                raise StreamsFailed("streams_failed", f"instance {name} is in {state}: {error}")
            return state == "RUNNING"

        _wait(running, timeout_seconds, f"instance {name} was not RUNNING")

    def wait_caught_up(self, timeout_seconds: float = RUNNING_SECONDS) -> None:
        """Wait until every copy of every store in every instance has no lag."""

        def caught_up() -> bool:
            lags = [self.lags(name) for name in self.instances]
            return all(
                lag.lag == 0
                for stores in lags
                for store in stores.values()
                for lag in store.values()
            )

        _wait(caught_up, timeout_seconds, f"{self.application_id} was not caught up")

    def close(self) -> None:
        """Kill every instance: their cluster is deleted too."""
        for name in self.instances:
            self.kill_instance(name)

    def __enter__(self) -> Self:
        self.create_source()
        return self

    def _instance(self, name: str) -> StreamsInstance:
        if name not in self._instances:
            raise CaughtupError("bad_instance", f"no instance {name} runs")
        return self._instances[name]


def _wait(condition: Callable[[], bool], timeout_seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise StreamsFailed("streams_failed", f"{otherwise} within {timeout_seconds:.0f} s")
        time.sleep(_POLL_SECONDS)
