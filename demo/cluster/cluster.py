"""A real Apache Kafka cluster on loopback, started from the published jars."""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.broker_config import (
    ClientConfig,
    Ports,
    Security,
    properties_text,
    server_properties,
)
from caughtup.demo.processes.children import ClosedOnExit, Process, Processes, free_ports
from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.command_lines import java_command
from caughtup.pipelines.java.compiling import kept
from caughtup.pipelines.java.jars import classpath

HEAP_MEGABYTES = 384
READY_SECONDS = 90.0
_POLL_SECONDS = 0.05
#: The log line of a node whose listeners are all bound.
_STARTED = "Kafka Server started"
#: The file of a formatted log directory that has the ids of its cluster and node.
_META = "meta.properties"


class BrokerFailed(CaughtupError):  # noqa: N818
    """A node of the embedded cluster did not start."""


class EmbeddedCluster(ClosedOnExit):
    """Nodes 1, 2, ... of a Kafka cluster in KRaft mode, with their data in a temporary directory.

    A context manager: entering starts the nodes and waits until all are ready; leaving ends them
    and removes their data. The first ``controllers`` nodes are controllers as well as brokers.
    ``broker_properties`` overrides broker configs; ``{node}`` in them is replaced by the node's id.
    With ``processes`` of the caller, the cluster uses their directory and ends with them. ``kafka``:
    the class path of another release, which has to log to standard output or error.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        controllers: int = 1,
        security: Security | None = None,
        broker_properties: Mapping[str, str] | None = None,
        processes: Processes | None = None,
        kafka: str = "",
    ) -> None:
        if not 1 <= controllers <= nodes <= 6:
            raise CaughtupError("bad_cluster", "1 to 6 nodes, of them 1 or more controllers")
        self.node_ids = tuple(range(1, nodes + 1))
        self.security = security or Security()
        self.cluster_id = _new_id()
        self._controllers = self.node_ids[:controllers]
        self._overrides = dict(broker_properties or {})
        self._kafka = kafka
        self._owns_processes = processes is None
        self._processes = processes
        self._running: dict[int, Process] = {}
        self._started: set[Process] = set()
        numbers = iter(free_ports(3 * nodes))
        self._ports = {
            node: Ports(next(numbers), next(numbers), next(numbers)) for node in self.node_ids
        }

    @property
    def pids(self) -> frozenset[int]:
        """The process ids of the nodes that run."""
        return frozenset(process.pid for process in self._running.values())

    @property
    def processes(self) -> Processes:
        """The cluster's processes; start others here that should end with the cluster."""
        if self._processes is None:
            self._processes = Processes()
        return self._processes

    @property
    def bootstrap_servers(self) -> str:
        """Every node's client listener."""
        return self._addresses(ports.client for ports in self._ports.values())

    @property
    def internal_bootstrap_servers(self) -> str:
        """Every node's inter-broker listener: plaintext, and its user may do everything."""
        return self._addresses(ports.internal for ports in self._ports.values())

    @property
    def running_nodes(self) -> tuple[int, ...]:
        """The ids of the nodes whose processes run."""
        return tuple(
            node for node, process in sorted(self._running.items()) if process.exit_code is None
        )

    def client_config(self, user: str | None = None) -> ClientConfig:
        """Return librdkafka's properties for a client of the cluster.

        ``user`` is one of the security's users, by default the first super user.
        """
        return {
            "bootstrap.servers": self.bootstrap_servers,
            # Warnings and worse only: brokers are also stopped on purpose.
            "log_level": 4,
            **self.security.client_config(user),
        }

    def node_directory(self, node: int) -> Path:
        """Return the directory of a node's configuration and, below ``data``, its logs."""
        return self.processes.directory / f"{self.cluster_id}-node-{node}"

    def node_log(self, node: int) -> Path:
        """Return the file that a node's output goes to."""
        return self.processes.directory / f"{self.cluster_id}-node-{node}.log"

    def start(self) -> None:
        """Start all nodes and wait until they are ready. Raises BrokerFailed."""
        try:
            for node in self.node_ids:
                self._launch(node)
            self.wait_ready()
        except BaseException:
            self.close()
            raise

    def start_node(self, node: int) -> None:
        """Start a stopped or killed node, and wait until it is ready. Raises BrokerFailed."""
        if node in self.running_nodes:
            raise CaughtupError("bad_cluster", f"node {node} is running already")
        self._launch(node)
        self.wait_ready()

    def stop_node(self, node: int) -> None:
        """Shut a node down (SIGTERM); its leaderships move to other nodes first if possible."""
        self._running_node(node).terminate()
        del self._running[node]

    def kill_node(self, node: int) -> None:
        """End a node with SIGKILL."""
        self._running_node(node).kill()
        del self._running[node]

    def wait_ready(self, timeout_seconds: float = READY_SECONDS) -> None:
        """Wait until every running node serves clients and knows exactly the running nodes.

        After a kill it waits until the cluster has noticed (6 s). Raises BrokerFailed with the log's
        path and its first error.
        """
        deadline = time.monotonic() + timeout_seconds
        for node in sorted(self._running):
            self._wait(node, deadline, partial(self._has_started, self._running[node]))
        for node in self.running_nodes:
            # The internal listener, since the client listener may need credentials.
            address = self._addresses([self._ports[node].internal])
            admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
            self._wait(node, deadline, partial(self._knows_all, admin))

    def close(self) -> None:
        """End every node at once and remove the data; does nothing the second time."""
        # Their data is deleted, so an orderly shutdown is not needed.
        for process in self._running.values():
            process.kill()
        if self._owns_processes and self._processes is not None:
            self._processes.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def _launch(self, node: int) -> None:
        directory = self.node_directory(node)
        directory.mkdir(exist_ok=True)
        data = directory / "data"
        config = directory / "server.properties"
        properties = server_properties(node, self._ports, self._controllers, self.security, data)
        own = {name: text.replace("{node}", str(node)) for name, text in self._overrides.items()}
        config.write_text(properties_text(properties | own))
        java = java_command(directory, HEAP_MEGABYTES, kafka=self._kafka)
        if not (data / _META).exists():
            _format(data, self.cluster_id, node, java, properties, self._kafka)
        self._running[node] = self.processes.start(
            self.node_log(node).stem, [*java, "kafka.Kafka", str(config)]
        )

    def _running_node(self, node: int) -> Process:
        if node not in self.running_nodes:
            raise CaughtupError("bad_cluster", f"node {node} is not running")
        return self._running[node]

    def _wait(self, node: int, deadline: float, condition: Callable[[], bool]) -> None:
        process = self._running[node]
        while not condition():
            if process.exit_code is not None:
                raise self._failure(process, f"ended with exit code {process.exit_code}")
            if time.monotonic() > deadline:
                raise self._failure(process, "was not ready in time")
            time.sleep(_POLL_SECONDS)

    def _has_started(self, process: Process) -> bool:
        """Return whether a node has logged that all its listeners are bound."""
        if process not in self._started and _STARTED in process.output():
            self._started.add(process)
        return process in self._started

    def _knows_all(self, admin: AdminClient) -> bool:
        try:
            brokers = admin.list_topics(timeout=2).brokers
        except KafkaException:
            return False
        return set(self.running_nodes) == set(brokers)

    @staticmethod
    def _addresses(ports: Iterable[int]) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in ports)

    @staticmethod
    def _failure(process: Process, what: str) -> BrokerFailed:
        # The directory is deleted with the cluster; keep the log for the reader of the message.
        kept = Path(tempfile.mkdtemp(prefix="caughtup-log-")) / process.log.name
        shutil.copyfile(process.log, kept)
        return BrokerFailed(
            "broker_failed", f"{process.name} {what}: {process.first_error()} (log: {kept})"
        )


def _format(
    data: Path,
    cluster_id: str,
    node: int,
    java: Sequence[str],
    properties: Mapping[str, str],
    kafka: str,
) -> None:
    """Format a node's log directory, as Kafka's tool formatted the first one of this release.

    The tool takes a second, and directories differ by their ids only. Raises BrokerFailed.
    """

    def format_first(directory: Path) -> None:
        config = directory.with_name("server.properties")
        config.write_text(properties_text({**properties, "log.dirs": str(directory)}))
        tool = (*java, "kafka.tools.StorageTool", "format", "--cluster-id", _new_id())
        ran = subprocess.run(
            (*tool, "--config", str(config)), capture_output=True, text=True, check=False
        )
        if ran.returncode:
            said = " ".join((ran.stderr or ran.stdout).split())
            raise BrokerFailed("broker_failed", f"Kafka's tool formatted nothing: {said:.300}")

    first = kept("formatted-storage", [(kafka or classpath()).encode()], format_first)
    shutil.copytree(first, data, dirs_exist_ok=True)
    ids = {"cluster.id": cluster_id, "node.id": str(node), "directory.id": _new_id()}
    lines = []
    for line in (first / _META).read_text().splitlines():
        name, _, value = line.partition("=")
        lines.append(f"{name}={ids.get(name, value)}" if value else line)
    (data / _META).write_text("\n".join(lines) + "\n")


def _new_id() -> str:
    # Kafka's Uuid as text; a leading dash would be taken for an option.
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]).startswith("-"):
        pass
    return text
