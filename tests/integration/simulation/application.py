"""A real application of 24 tasks with state, whose restoring a quota of its broker slows down."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Producer

from caughtup.agents.looks.cluster import ClusterLooks
from caughtup.agents.progress import NoProgress
from caughtup.agents.settings import Settings
from caughtup.demo.apps.restore_listener import RestoredCopy
from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.streams.run import RunningInstance
from caughtup.models.simulation.streams.topology import SimulatedApplication
from caughtup.models.what_if.question import LeaderAssignedGroup, group_of
from tests.integration.simulation.topology import STORE, Table
from tests.support.kafka import quotas

TASKS = 24
NAMES = ("a", "b", "c", "d")
VALUE_BYTES = 500
SESSION_MS = 10_000
HEARTBEAT_MS = 500
_PROPERTIES = {
    "acceptable.recovery.lag": "300",
    "max.warmup.replicas": "8",
    "num.standby.replicas": "0",
    "commit.interval.ms": "1000",
    "session.timeout.ms": str(SESSION_MS),
    "heartbeat.interval.ms": str(HEARTBEAT_MS),
    # When a task wrote to its changelog is when it processed, by the broker's clock.
    "topic.message.timestamp.type": "LogAppendTime",
    "producer.linger.ms": "5",
    # So small that all changelogs which are restored get of each second's quota alike.
    "restore.consumer.max.partition.fetch.bytes": "32768",
    "restore.consumer.fetch.max.bytes": "262144",
}
_Seen = TypeVar("_Seen")


class SlowApplication(ClosedOnExit):
    """Three instances with a thread each, and a look at their group as commands have it.

    ``names`` are theirs, and that of a fourth. ``restore_bytes`` is what each of them may restore a
    second, by its name: two applications on one cluster need other names. A context manager: leaving ends
    the load and every instance.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        name: str,
        *,
        restore_bytes: int,
        properties: Mapping[str, str] | None = None,
        class_path: Sequence[Path] = (),
        prefix: str = "caughtup-",
        names: Sequence[str] = NAMES,
    ) -> None:
        self.cluster = cluster
        self.names = tuple(names)
        self.name = name
        self.streams = StreamsApplication(
            cluster,
            name,
            partitions=TASKS,
            properties={**_PROPERTIES, **(properties or {})},
            class_path=class_path,
        )
        self.streams.topology = Table(self.streams.source)  # type: ignore[assignment]
        self.streams.create_source()
        settings = Settings(
            bootstrap_servers=cluster.bootstrap_servers,
            topic_prefix=prefix,
            applications=self.streams.parameters,
        )
        self._restore_bytes = restore_bytes
        self._looks = ClusterLooks(settings, [name])
        self._gone: list[RestoredCopy] = []
        self._stop = threading.Event()
        self._load: threading.Thread | None = None
        self.load_per_task = 0.0
        #: What a thread is known to restore, offsets a second; None before that was measured.
        self.restore_rate: float | None = None

    @property
    def changelog(self) -> str:
        """The topic to which each task writes what it processes."""
        return f"{self.name}-{STORE}-changelog"

    def set_up(self, records: int, load_per_task: float) -> None:
        """Start three instances, give each task so many records of state, and go on from there."""
        for name in self.names[:3]:
            self.streams.start_instance(name, wait=False)
        for name in self.names[:3]:
            self.streams.wait_running(name)
        self._limit_restoring()
        self.settle()
        self._produce(records * TASKS, None)
        self.load_per_task = load_per_task
        self._load = threading.Thread(target=self._produce_on, daemon=True)
        self._load.start()
        self.settle()

    def start(self, name: str) -> None:
        """Start an instance; whoever started before finds its process id and states again."""
        self.streams.start_instance(name, wait=False)

    def stop(self, name: str) -> None:
        """Stop an instance in order: it leaves the group."""
        self._keep_copies(name)
        self.streams.stop_instance(name)

    def kill(self, name: str) -> None:
        """End an instance with SIGKILL."""
        self._keep_copies(name)
        self.streams.kill_instance(name)

    def lose_disk(self, name: str) -> None:
        """Remove the states of an instance that doesn't run; its process id stays."""
        for path in self._directory(name).glob("*_*"):
            for file in sorted(path.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()
            path.rmdir()

    def set_process_id(self, name: str, process: ProcessId) -> None:
        """Have an instance that never ran start with a process id, which Kafka draws else."""
        directory = self._directory(name)
        directory.mkdir(parents=True)
        file = directory / "kafka-streams-process-metadata"
        file.write_text(json.dumps({"processId": str(process)}))

    def copies(self, since_ms: int) -> list[RestoredCopy]:
        """Return every copy that any instance began to restore since a moment (ms)."""
        running = [one for name in self.streams.instances for one in self.streams.restored(name)]
        return [one for one in (*self._gone, *running) if one.started_ms >= since_ms]

    def group(self) -> LeaderAssignedGroup | None:
        """Look at the group as ``caughtup simulate`` does."""
        rate = self.restore_rate
        known = None if rate is None else (rate, rate)
        return group_of(self._looks.look(NoProgress()), self.name, now_ms(), known)

    def members(self) -> int:
        """Return how many instances the group's last generation has."""
        group = self.group()
        return 0 if group is None else len(group.generation.clients)

    def running(
        self, group: LeaderAssignedGroup, application: SimulatedApplication
    ) -> list[RunningInstance]:
        """Return the group's instances with where states were when a process first opened them.

        By its listeners; what came since is in RocksDB's memory, as a kill shows. ``application`` is
        what they are instances of where it is played.
        """
        return [
            replace(
                one,
                flushed={
                    TaskId(0, copy.partition): float(copy.start)
                    for copy in reversed(self.streams.restored(one.name))
                },
            )
            for one in group.running(application)
        ]

    def running_well(self) -> bool:
        """Return whether every instance says that it runs, and every task is somebody's."""
        names = self.streams.instances
        if any(self.streams.state(name) != "RUNNING" for name in names):
            return False
        threads = [one for name in names for one in self.streams.threads(name).values()]
        return sum(len(one.active) for one in threads) == TASKS

    def settle(self, seconds: float = 600.0) -> LeaderAssignedGroup:
        """Wait until all tasks run, all copies are there and nobody asks for a rebalance."""

        def settled() -> LeaderAssignedGroup | None:
            if not self.running_well():
                return None
            group = self.group()
            if group is None or now_ms() - group.generation.as_of_ms < 4_000:
                return None
            ready = (
                len(group.generation.clients) == len(self.streams.instances)
                and group.generation.next_rebalance() is None
                and all(self._caught_up(name) for name in self.streams.instances)
            )
            return group if ready else None

        return waited(f"{self.name} is at rest", settled, seconds)

    def close(self) -> None:
        """End the load, and every instance."""
        self._stop.set()
        if self._load is not None:
            self._load.join()
        self.streams.close()

    def joined_ms(self, name: str) -> int | None:
        """Return when an instance first asked to join the group, by its own log (ms)."""
        output = self.streams._instances[name].process.output()
        line = next((one for one in output.splitlines() if "(Re-)joining group" in one), None)
        if line is None:
            return None
        return round(datetime.fromisoformat(line[:23].replace(",", ".")).timestamp() * 1_000)

    def _directory(self, name: str) -> Path:
        processes = self.cluster.processes.directory
        return processes / f"{self.name}-{name}" / "state" / self.name

    def _keep_copies(self, name: str) -> None:
        self._gone += self.streams.restored(name)

    def _caught_up(self, name: str) -> bool:
        lags = self.streams.lags(name)
        bound = 50 + 5 * self.load_per_task
        return all(one.lag <= bound for stores in lags.values() for one in stores.values())

    def _limit_restoring(self) -> None:
        """Set a quota for each restore consumer, as an operator would."""
        java = self.streams._instances[self.names[0]]._gateway.jvm
        rates = dict.fromkeys(
            (f"{name}-StateUpdater-1-restore-consumer" for name in self.names),
            float(self._restore_bytes),
        )
        quotas.limit_reading(java, self.cluster.internal_bootstrap_servers, rates)

    def _produce_on(self) -> None:
        self._produce(1 << 62, self.load_per_task * TASKS)

    def _produce(self, count: int, per_second: float | None) -> None:
        """Write to all partitions in turn, at a rate or as fast as it goes."""
        producer = Producer({**self.cluster.client_config(), "linger.ms": 5})
        started = time.monotonic()
        for number in range(count):
            while per_second and (ahead := started + number / per_second - time.monotonic()) > 0.01:
                producer.poll(0)
                if self._stop.wait(min(ahead, 0.2)):
                    break
            if self._stop.is_set():
                break
            key = f"key-{number // TASKS % 1_000}"
            value = str(number).ljust(VALUE_BYTES, ".")
            while True:
                try:
                    producer.produce(self.streams.source, value, key, number % TASKS)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush(60)


def waited(what: str, ask: Callable[[], _Seen | None], seconds: float) -> _Seen:
    """Call ``ask`` until it returns something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (seen := ask()):
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still not: {what}"
        time.sleep(0.5)
    return seen


def now_ms() -> int:
    """Return this machine's clock (ms), which brokers and instances share."""
    return int(time.time() * 1_000)
