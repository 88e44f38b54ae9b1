"""Faust applications beside a cluster: workers as processes, and their reported events."""

from __future__ import annotations

import json
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import Process, free_ports
from tests.support.followers.faust_application import TABLE
from tests.support.service import wait_for

PARTITIONS = 6
RECORDS = 300
ACCEPTABLE = 10
CONFIG = {"acceptable.recovery.lag": ACCEPTABLE, "probing.rebalance.interval.ms": 60_000}
# Longer than clocks differ: rebalances of the same poll are distinguished by their times.
SOON = {"follow_up_ms": 1_500, "positions_interval_ms": 200}
SECONDS = 120.0


class FaustWorker:
    """One worker as a process beside a cluster."""

    def __init__(self, cluster: EmbeddedCluster, name: str, options: dict[str, Any]) -> None:
        self.name = name
        directory = cluster.processes.directory / options["group"] / name
        directory.mkdir(parents=True, exist_ok=True)
        self._events = directory / "events"
        self._events.touch()
        self._read = 0
        self._by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
        more = {"name": name, "directory": str(directory), "events": str(self._events)}
        self.process: Process = cluster.processes.start(
            f"{options['group']}-{name}",
            [
                sys.executable,
                "-m",
                "tests.support.followers.faust_application",
                json.dumps(options | more),
            ],
            {"PYTHONPATH": str(Path(__file__).parents[3])},
        )

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind that it has reported so far."""
        with self._events.open("rb") as events:
            events.seek(self._read)
            for line in events:
                if line.endswith(b"\n"):
                    self._read += len(line)
                    event = json.loads(line)
                    self._by_kind[event["kind"]].append(event)
        return self._by_kind[kind]

    def assigned(self) -> dict[str, Any]:
        """Return its last assignment; an empty one before the first."""
        return (self.events("assigned") or [{"sources": [], "active": [], "standby": []}])[-1]

    def check(self) -> None:
        """Fail if it has ended."""
        assert self.process.exit_code is None, self.process.output()[-5_000:]


class FaustApplication:
    """An application's topic, and its workers."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        make_topic: Callable[..., str],
        store: str,
        settings: dict[str, Any],
    ) -> None:
        self.group = f"faust-{uuid.uuid4().hex[:8]}"
        self.source = make_topic("placed", PARTITIONS)
        self.changelog = f"{self.group}-{TABLE}-changelog"
        self.written = 0
        self.workers: list[FaustWorker] = []
        self.ended: list[FaustWorker] = []
        self._cluster = cluster
        self._options = {
            "group": self.group,
            "bootstrap_servers": cluster.bootstrap_servers,
            "source": self.source,
            "partitions": PARTITIONS,
            "standbys": 0,
            "store": store,
            "config": CONFIG,
            "settings": {**SOON, **settings},
        }

    def write(self) -> None:
        """Write a record of each key, ``RECORDS`` of them to each partition."""
        producer = Producer(self._cluster.client_config())
        for partition in range(PARTITIONS):
            for number in range(RECORDS):
                key = b"%d-%d" % (partition, number)
                producer.produce(self.source, b"1", key, partition=partition)
        assert producer.flush(30) == 0
        self.written += 1

    def start(self, *names: str) -> None:
        for name in names:
            options = {**self._options, "port": free_ports(1)[0]}
            self.workers.append(FaustWorker(self._cluster, name, options))

    def begin(self, name: str) -> None:
        """Start the first worker, and write its records before another worker starts.

        With any assignor, Faust itself may stop reading or skip a record if a rebalance comes
        before it has read and committed anything.
        """
        self.start(name)
        self.wait("it has all", lambda: self.spread() == [PARTITIONS])
        self.write()
        self.wait("all is counted", self.all_is_counted)
        self.wait("all is committed", self.all_is_committed)

    def stop(self, name: str) -> None:
        (worker,) = (one for one in self.workers if one.name == name)
        self.workers.remove(worker)
        self.ended.append(worker)
        worker.process.terminate()
        assert worker.process.exit_code == 0, worker.process.output()[-5_000:]

    def spread(self) -> list[int]:
        return sorted(len(worker.assigned()["sources"]) for worker in self.workers)

    def counted(self) -> list[dict[str, Any]]:
        """Return the counts of all workers, ordered by this machine's clock."""
        events = [
            {**event, "worker": worker.name}
            for worker in (*self.workers, *self.ended)
            for event in worker.events("counted")
        ]
        return sorted(events, key=lambda event: float(event["at"]))

    def all_is_counted(self) -> bool:
        done = {(event["partition"], event["offset"]) for event in self.counted()}
        return len(done) == PARTITIONS * RECORDS * self.written

    def all_is_committed(self) -> bool:
        consumer = Consumer({**self._cluster.client_config(), "group.id": self.group})
        try:
            wanted = [TopicPartition(self.source, number) for number in range(PARTITIONS)]
            committed = consumer.committed(wanted, timeout=30)
        finally:
            consumer.close()
        return {one.offset for one in committed} == {RECORDS * self.written}

    def assert_counted_one_after_the_other(self) -> None:
        """Assert that each new owner had all earlier counts, and former owners stopped counting."""
        by_key = defaultdict(list)
        for event in self.counted():
            by_key[event["key"]].append(event["count"])
        assert len(by_key) == PARTITIONS * RECORDS
        wrong = {
            key: counts for key, counts in by_key.items() if counts != [*range(1, len(counts) + 1)]
        }
        assert wrong == {}

    def wait(self, what: str, ask: Any) -> None:
        def asked() -> Any:
            for worker in self.workers:
                worker.check()
            return ask()

        try:
            wait_for(what, asked, SECONDS)
        except AssertionError as error:
            told = [(one.name, one.assigned()) for one in self.workers]
            done = {(event["partition"], event["offset"]) for event in self.counted()}
            end = RECORDS * self.written
            missing = {
                partition: [offset for offset in range(end) if (partition, offset) not in done][:5]
                for partition in range(PARTITIONS)
            }
            logs = "\n".join(one.process.output()[-3_000:] for one in self.workers)
            raise AssertionError(f"{error}: {told}; not counted: {missing}\n{logs}") from None


@contextmanager
def started(
    cluster: EmbeddedCluster, make_topic: Callable[..., str], store: str, **settings: Any
) -> Iterator[FaustApplication]:
    application = FaustApplication(cluster, make_topic, store, settings)
    try:
        yield application
    finally:
        for worker in application.workers:
            worker.process.terminate(10)
