"""A Connect cluster: workers of one group, started and ended by name, and their REST interface."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from caughtup.demo.cluster.broker_config import properties_text
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import ClosedOnExit, Process, Processes, free_ports
from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.command_lines import java_command
from caughtup.pipelines.java.jars import connect_classpath

_SECONDS = 30.0
#: The status of a worker that rebalances, or is behind its leader in the config topic.
BUSY = 409


class RestFailed(CaughtupError):  # noqa: N818
    """A worker refused a request, or did not answer (then ``status`` is None)."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__("connect_failed", message)
        self.status = status


class RestClient:
    """Sends requests to a worker, which forwards those for its leader. Calls raise RestFailed."""

    def __init__(self, url: str) -> None:
        self.url = url

    def connectors(self) -> list[str]:
        """Return the names of all connectors."""
        names: list[str] = self._ask("GET", "connectors")
        return sorted(names)

    def configure(self, connector: str, config: Mapping[str, str]) -> None:
        """Create a connector, or change its configuration."""
        self._ask("PUT", f"{_path(connector)}/config", dict(config))

    def scale(self, connector: str, tasks: int) -> None:
        """Set a connector's tasks.max."""
        config = self._ask("GET", f"{_path(connector)}/config")
        self.configure(connector, {**config, "tasks.max": str(tasks)})

    def restart(self, connector: str, *, task: int | None = None) -> None:
        """Restart a connector, without its tasks, or one of its tasks."""
        which = "" if task is None else f"/tasks/{task}"
        self._ask("POST", f"{_path(connector)}{which}/restart")

    def delete(self, connector: str) -> None:
        """Delete a connector."""
        self._ask("DELETE", _path(connector))

    def status(self, connector: str) -> dict[str, object]:
        """Return the status of a connector and of its tasks, as reported by their workers."""
        status: dict[str, object] = self._ask("GET", f"{_path(connector)}/status")
        return status

    def is_healthy(self) -> bool:
        """Return whether the worker reports that it has started and is in its group."""
        try:
            self._ask("GET", "health")
        except RestFailed:
            return False
        return True

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:
                answer = response.read()
        except urllib.error.HTTPError as error:
            reason = error.read().decode(errors="replace")
            raise RestFailed(f"{method} {path}: {error.code} {reason:.300}", error.code) from None
        except OSError as error:
            raise RestFailed(f"{method} {path}: {error}") from None
        return json.loads(answer) if answer else None


def _path(connector: str) -> str:
    return f"connectors/{quote(connector, safe='')}"


HEAP_MEGABYTES = 192
_JOINING = "(Re-)joining group (WorkerCoordinator)"
_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
READY_SECONDS = 120.0
_POLL_SECONDS = 0.1
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_PROPERTIES = {
    "key.converter": _STRINGS,
    "value.converter": _STRINGS,
    "offset.flush.interval.ms": "5000",
    # All workers learn of a rebalance within a second.
    "heartbeat.interval.ms": "1000",
    # One partition and one replica are enough: a demo's data is deleted.
    "config.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "status.storage.replication.factor": "1",
    # Finds plugins by manifests: scanning every class of the class path takes seconds.
    "plugin.discovery": "service_load",
}


class WorkerProcess:
    """A started worker process. Its name is also its client id in the group."""

    def __init__(
        self,
        name: str,
        port: int,
        processes: Processes,
        properties: Mapping[str, str],
        directory: Path,
    ) -> None:
        """Start the worker. Raises JavaMissing or JarsUnavailable."""
        self.name = name
        self.rest = RestClient(f"http://127.0.0.1:{port}/")
        directory.mkdir(exist_ok=True)
        config = directory / "worker.properties"
        mine = {"client.id": name, "listeners": f"http://127.0.0.1:{port}"}
        config.write_text(properties_text({**properties, **mine}))
        command = java_command(directory, HEAP_MEGABYTES, connect_classpath())
        self.process: Process = processes.start(directory.name, [*command, _MAIN, str(config)])

    @property
    def runs(self) -> bool:
        """Whether its process runs."""
        return self.process.exit_code is None

    def has_started(self) -> bool:
        """Return whether it has started to read its topics; after that it joins its group."""
        return "Herder starting" in self.process.output()

    def has_joined(self) -> bool:
        """Return whether it has asked to join its group with a member id."""
        # The first request is without a member id, and returns one.
        return self.process.output().count(_JOINING) > 1

    def leave(self) -> None:
        """End it by SIGTERM: it stops its tasks, and leaves its group."""
        self.process.terminate()

    def kill(self) -> None:
        """End it by SIGKILL: its group removes it after its session time-out."""
        self.process.kill()

    def suspend(self) -> None:
        """Suspend it (SIGSTOP), with its heartbeats."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it (SIGCONT)."""
        os.kill(self.process.pid, signal.SIGCONT)


class ConnectWorkers(ClosedOnExit):
    """Workers of one Connect cluster, which end with an embedded Kafka cluster.

    A context manager: leaving it ends the workers. ``max_delay_ms``:
    ``scheduled.rebalance.max.delay.ms``. ``properties`` adds to and overrides the workers'
    configuration. A worker that is started again gets the same port.
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
            # The internal listener, since the client listener may need credentials.
            "bootstrap.servers": cluster.internal_bootstrap_servers,
            "group.id": group,
            "config.storage.topic": self.config_topic,
            "offset.storage.topic": self.offset_topic,
            "status.storage.topic": self.status_topic,
            "scheduled.rebalance.max.delay.ms": str(max_delay_ms),
            **(properties or {}),
        }
        self._ports: dict[str, int] = {}
        self._workers: dict[str, WorkerProcess] = {}

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
        """The topic of the statuses of connectors and tasks."""
        return f"{self.group}-status"

    @property
    def directory(self) -> Path:
        """A directory for connectors' files, which is deleted with the cluster."""
        return self._cluster.processes.directory

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the workers that run."""
        return tuple(sorted(name for name, worker in self._workers.items() if worker.runs))

    def __getitem__(self, name: str) -> WorkerProcess:
        """Return a started worker by name. Raises CaughtupError ``bad_worker``."""
        if name not in self._workers:
            raise CaughtupError("bad_worker", f"no worker {name} was started")
        return self._workers[name]

    def start(self, *names: str) -> None:
        """Start workers at the same time, without waiting for them. Raises CaughtupError."""
        for name in names:
            if name in self.names:
                raise CaughtupError("bad_worker", f"worker {name} is running already")
            if name not in self._ports:
                (self._ports[name],) = free_ports(1)
            self._workers[name] = WorkerProcess(
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
        """Start workers such that they join in the same rebalance, if other workers run already.

        A rebalance ends as soon as all former members have joined. So new workers are suspended
        until all have started, and the former ones until all new ones wait to join, for much less
        than their session time-out. Raises CaughtupError.
        """
        there = [self[name] for name in self.names]
        self.start(*names)
        new = [self[name] for name in names]
        started: set[WorkerProcess] = set()

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
        """End a worker by SIGTERM: it leaves its group."""
        self[name].leave()

    def configure(self, connector: str, config: Mapping[str, str]) -> None:
        """Create a connector, or change its configuration, through any worker.

        Raises CaughtupError.
        """
        self.ask(f"{connector} is configured", lambda rest: rest.configure(connector, config))

    def ask(self, what: str, request: Callable[[RestClient], None]) -> None:
        """Repeat a request until a worker takes it, after rebalances. Raises CaughtupError."""
        self.wait(what, lambda: self._takes(request))

    def wait(self, what: str, ask: Callable[[], bool], *workers: WorkerProcess) -> None:
        """Wait until a condition holds. Raises CaughtupError, at once if a worker ends."""
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
        """Kill every worker: their Kafka cluster is deleted too."""
        for worker in self._workers.values():
            worker.kill()

    def __enter__(self) -> Self:
        return self
