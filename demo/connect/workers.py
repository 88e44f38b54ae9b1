"""A Connect cluster: workers of one group, started and ended by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.connect.rest import BUSY, RestClient, RestFailed
from caughtup.demo.connect.worker import ConnectWorker
from caughtup.demo.processes.closing import ClosedOnExit
from caughtup.demo.processes.ports import free_ports
from caughtup.models.errors import CaughtupError

READY_SECONDS = 120.0
_POLL_SECONDS = 0.1
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_PROPERTIES = {
    "key.converter": _STRINGS,
    "value.converter": _STRINGS,
    "offset.flush.interval.ms": "5000",
    # So that all learn of a round within a second.
    "heartbeat.interval.ms": "1000",
    # One partition of each suffices, and one replica: a demo's data is thrown away.
    "config.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "status.storage.replication.factor": "1",
    # By manifests: reading every class of the class path takes seconds.
    "plugin.discovery": "service_load",
}


class ConnectWorkers(ClosedOnExit):
    """Workers of one Connect cluster, beside an embedded Kafka cluster with which they end.

    A context manager: leaving it ends the workers. ``max_delay_ms`` is
    ``scheduled.rebalance.max.delay.ms``; ``properties`` adds to, and overrides, the workers'
    configuration. A worker that is started again has the port that it had before.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        group: str = "connect-demo",
        *,
        max_delay_ms: int,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.group = group
        self.max_delay_ms = max_delay_ms
        self._cluster = cluster
        self._properties = {
            **_PROPERTIES,
            # Inside, so that a cluster which asks clients for passwords serves it all the same.
            "bootstrap.servers": cluster.internal_bootstrap_servers,
            "group.id": group,
            "config.storage.topic": self.config_topic,
            "offset.storage.topic": self.offset_topic,
            "status.storage.topic": self.status_topic,
            "scheduled.rebalance.max.delay.ms": str(max_delay_ms),
            **(properties or {}),
        }
        self._ports: dict[str, int] = {}
        self._workers: dict[str, ConnectWorker] = {}

    @property
    def config_topic(self) -> str:
        """The topic of the connectors' configurations."""
        return f"{self.group}-configs"

    @property
    def offset_topic(self) -> str:
        """The topic of the source connectors' offsets."""
        return f"{self.group}-offsets"

    @property
    def status_topic(self) -> str:
        """The topic of the states that workers tell of connectors and tasks."""
        return f"{self.group}-status"

    @property
    def directory(self) -> Path:
        """Where connectors' files may be: it goes with the cluster."""
        return self._cluster.processes.directory

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the workers that run."""
        return tuple(sorted(name for name, worker in self._workers.items() if worker.runs))

    def __getitem__(self, name: str) -> ConnectWorker:
        """Return a worker that was started."""
        if name not in self._workers:
            raise CaughtupError("bad_worker", f"no worker {name} was started")
        return self._workers[name]

    def start(self, *names: str) -> None:
        """Start workers side by side, and don't wait for them. Raises CaughtupError."""
        for name in names:
            if name in self.names:
                raise CaughtupError("bad_worker", f"worker {name} is running already")
            if name not in self._ports:
                (self._ports[name],) = free_ports(1)
            self._workers[name] = ConnectWorker(
                name,
                self._ports[name],
                self._cluster.processes,
                self._properties,
                self.directory / f"{self.group}-{name}",
            )

    def wait_healthy(self, *names: str) -> None:
        """Wait until workers are in their group. Raises CaughtupError."""
        for name in names:
            worker = self[name]
            self.wait(f"worker {name} is in its group", worker.rest.is_healthy, worker)

    def start_together(self, *names: str) -> None:
        """Start workers and have them join in one round, if any others are there already.

        A round ends as soon as all who were in the last one have joined it. So whoever is new
        stands still until all have started, and the others do until all who are new wait for the
        round: far less than their session. Raises CaughtupError.
        """
        there = [self[name] for name in self.names]
        self.start(*names)
        new = [self[name] for name in names]
        started: set[ConnectWorker] = set()

        def all_started() -> bool:
            for worker in set(new) - started:
                if worker.has_started():
                    worker.suspend()
                    started.add(worker)
            return len(started) == len(new)

        self.wait(f"{' and '.join(names)} have started", all_started, *new)
        for worker in there:
            worker.suspend()
        try:
            for worker in new:
                worker.resume()
            for worker in new:
                self.wait(f"worker {worker.name} waits for the round", worker.has_joined, worker)
        finally:
            for worker in there:
                worker.resume()
        self.wait_healthy(*names)

    def leave(self, name: str) -> None:
        """End a worker as an operator does: it leaves its group."""
        self[name].leave()

    def configure(self, connector: str, config: Mapping[str, str]) -> None:
        """Create a connector, or give it another configuration, by a worker that takes it.

        Raises CaughtupError.
        """
        self.ask(f"{connector} is configured", lambda rest: rest.configure(connector, config))

    def ask(self, what: str, request: Callable[[RestClient], None]) -> None:
        """Ask a worker for something until it isn't busy with a rebalance. Raises CaughtupError."""
        self.wait(what, lambda: self._takes(request))

    def wait(self, what: str, ask: Callable[[], bool], *workers: ConnectWorker) -> None:
        """Wait until something is so. Raises CaughtupError, at once when one of the workers ends."""
        deadline = time.monotonic() + READY_SECONDS
        while not ask():
            for worker in workers:
                if not worker.runs:
                    error = worker.process.first_error()
                    raise CaughtupError("connect_failed", f"worker {worker.name} ended: {error}")
            if time.monotonic() > deadline:
                raise CaughtupError(
                    "connect_failed", f"after {READY_SECONDS:.0f} s still not: {what}"
                )
            time.sleep(_POLL_SECONDS)

    def _takes(self, request: Callable[[RestClient], None]) -> bool:
        try:
            request(self[self.names[0]].rest)
        except RestFailed as error:
            if error.status == BUSY:
                return False
            raise
        return True

    def close(self) -> None:
        """End every worker at once: the cluster that knows of them goes next."""
        for worker in self._workers.values():
            worker.kill()

    def __enter__(self) -> Self:
        return self
