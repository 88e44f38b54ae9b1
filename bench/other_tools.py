"""Other tools that show lag, measured beside the service on the same broker.

Their programs are given, and not fetched: kminion is built with ``go build`` in its checkout, klag
from its sources with its dependencies on the class path.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.cluster.cluster import EmbeddedCluster
    from caughtup.demo.processes.children import Process, Processes

_READY_SECONDS, _ANSWER_SECONDS, _POLL_SECONDS = 300.0, 120.0, 0.2

_KMINION_READ = re.compile(
    r"^kminion_exporter_offset_consumer_records_consumed_total ([\d.e+]+)$", re.MULTILINE
)

kminion_option = click.option(
    "--kminion",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    help="kminion's program, which is measured on the same broker.",
)
klag_option = click.option(
    "--klag",
    metavar="COMMAND",
    help="The command that starts klag, which is measured on the same broker: "
    "'java -cp … io.github.themoah.klag.KlagLauncher'.",
)


class OtherTool(NamedTuple):
    """A tool's command, and the environment by which it is configured, without its port."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    port_variable: str
    ready_path: str


def kminion_tool(program: Path, bootstrap_servers: str, *, reads_log: bool) -> OtherTool:
    """Return kminion with its defaults: it asks at each scrape, or reads the offsets log.

    It shows nothing of log directories, since the service asks for none here.
    """
    mode = "offsetsTopic" if reads_log else "adminApi"
    environment = {
        "KAFKA_BROKERS": bootstrap_servers,
        "MINION_CONSUMERGROUPS_SCRAPEMODE": mode,
        "MINION_LOGDIRS_ENABLED": "false",
        "EXPORTER_HOST": "127.0.0.1",
    }
    return OtherTool(f"kminion, {mode}", (str(program),), environment, "EXPORTER_PORT", "ready")


def klag_tool(command: str, bootstrap_servers: str, interval_seconds: float) -> OtherTool:
    """Return klag, which asks in each interval, and answers scrapes from memory."""
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "METRICS_REPORTER": "prometheus",
        "METRICS_INTERVAL_MS": str(round(interval_seconds * 1000)),
    }
    return OtherTool("klag", tuple(shlex.split(command)), environment, "HTTP_PORT", "readyz")


class RunningTool:
    """A tool that runs and is ready."""

    def __init__(self, tool: OtherTool, processes: Processes) -> None:
        """Start it and wait until it is ready. Raises CaughtupError ``bench_failed``."""
        from caughtup.demo.processes.children import free_ports

        (self._port,) = free_ports(1)
        environment = {**tool.environment, tool.port_variable: str(self._port)}
        name = f"{tool.name.partition(',')[0]}-{self._port}"
        self.process: Process = processes.start(name, tool.command, environment)
        began = time.monotonic()
        while not self._is_ready(tool.ready_path):
            if self.process.exit_code is not None or time.monotonic() - began > _READY_SECONDS:
                why = self.process.first_error()
                raise CaughtupError("bench_failed", f"{tool.name} was not ready: {why}")
            time.sleep(_POLL_SECONDS)
        self.ready_seconds = time.monotonic() - began

    def scrape(self) -> None:
        """Read ``/metrics``, compressed, as Prometheus does. Raises OSError."""
        self._get("metrics", {"Accept-Encoding": "gzip"})

    def metrics(self) -> str:
        """Return ``/metrics``. Raises OSError."""
        return self._get("metrics", {}).decode()

    def records_read(self) -> float:
        """Return how many records of the offsets log kminion has read, by its metrics."""
        found = _KMINION_READ.search(self.metrics())
        return float(found[1]) if found else 0.0

    def _is_ready(self, path: str) -> bool:
        try:
            self._get(path, {})
        except OSError:
            return False
        return True

    def _get(self, path: str, headers: dict[str, str]) -> bytes:
        address = f"http://127.0.0.1:{self._port}/{path}"
        request = urllib.request.Request(address, headers=headers)
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
            body: bytes = answer.read()
        return body


_REQUESTS = "kafka.network:type=RequestMetrics,name=RequestsPerSec,*"
_REQUEST = re.compile(r"request=(\w+)(?:,version=\d+)?:Count=(\d+)")


class BrokerRequests:
    """How many requests of each API a broker has had, by its own metrics."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        """Open the broker's JMX port on loopback. Raises CaughtupError without a JDK's ``jcmd``."""
        from caughtup.demo.processes.children import free_ports
        from caughtup.pipelines.java.find import find_java
        from caughtup.pipelines.java.jars import KAFKA_VERSION, fetch_jars

        self._java = find_java().program
        coordinate = f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}"
        self._classpath = str(fetch_jars("kafka-tools", [coordinate]) / "*")
        (self._port,) = free_ports(1)
        self._run(
            str(Path(self._java).with_name("jcmd")),
            str(min(cluster.pids)),
            "ManagementAgent.start",
            f"jmxremote.port={self._port}",
            "jmxremote.host=127.0.0.1",
            "jmxremote.authenticate=false",
            "jmxremote.ssl=false",
        )

    def count(self) -> dict[str, int]:
        """Return the number of requests by API."""
        printed = self._run(
            str(self._java),
            *("-cp", self._classpath, "org.apache.kafka.tools.JmxTool", "--one-time"),
            *("--jmx-url", f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{self._port}/jmxrmi"),
            *("--object-name", _REQUESTS, "--attributes", "Count", "--report-format", "properties"),
        )
        counts: dict[str, int] = {}
        for api, number in _REQUEST.findall(printed):
            counts[api] = counts.get(api, 0) + int(number)
        return counts

    @staticmethod
    def _run(*command: str) -> str:
        try:
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or getattr(error, "stdout", None) or error
            raise CaughtupError(
                "bench_failed", f"{Path(command[0]).name} failed: {' '.join(str(said).split())}"
            ) from error
        return ran.stdout
