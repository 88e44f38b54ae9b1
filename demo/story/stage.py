"""The demo's processes: the cluster, the application, the service and the Spark job."""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import ClosedOnExit, Process, Processes, free_ports
from caughtup.models.errors import CaughtupError
from caughtup.pipelines.java.find import QUICK_START

APPLICATION = "orders"
PARTITIONS = 4
_POLL_SECONDS = 0.2
_READY_SECONDS = 90.0
_HTTP_SECONDS = 10.0
_Seen = TypeVar("_Seen")

#: The state that the page shows, or a part of it, decoded from JSON.
View = Mapping[str, Any]


class DemoStage(ClosedOnExit):
    """The demo's processes, which all end with the context.

    ``web_port``: the service's port, 0 for a free one. ``settings``: other settings of the service,
    by name.
    """

    def __init__(
        self,
        *,
        nodes: int = 2,
        controllers: int = 1,
        web_port: int = 0,
        broker_properties: Mapping[str, str] | None = None,
        settings: Mapping[str, str | int | list[str]] | None = None,
    ) -> None:
        self._more_settings = settings or {}
        self.processes = Processes()
        self.cluster = EmbeddedCluster(
            nodes,
            controllers=controllers,
            processes=self.processes,
            broker_properties=broker_properties,
        )
        self.application = StreamsApplication(self.cluster, APPLICATION, partitions=PARTITIONS)
        self.web_port = web_port or free_ports(1)[0]
        self.history = self.processes.directory / "history"
        self._service: Process | None = None
        self._spark: Process | None = None

    @property
    def applications(self) -> tuple[StreamsApplication, ...]:
        """The applications that the service's settings describe."""
        return (self.application,)

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://127.0.0.1:{self.web_port}/"

    @property
    def service(self) -> Process:
        """The service's process. It has to be started."""
        assert self._service is not None
        return self._service

    @property
    def settings_file(self) -> Path:
        """The settings file that the service runs with."""
        return self.processes.directory / "caughtup.toml"

    def start_cluster(self) -> None:
        """Start the brokers and create the application's source topic."""
        self.cluster.start()
        self.application.create_source()

    def start_service(self, checkout: Path | None = None, **settings: str) -> None:
        """Start ``caughtup run`` and wait until it is ready. Raises CaughtupError.

        ``checkout``: another one, whose service is started. ``settings`` replace the stage's.
        """
        self.settings_file.write_text(self._settings(settings))
        command = [*caughtup_command(), "run", "--config", str(self.settings_file)]
        environment = {} if checkout is None else {"PYTHONPATH": str(checkout)}
        self._service = self.processes.start("service", command, environment)
        self.wait("the service is ready", self._is_ready, _READY_SECONDS, self._service)

    def start_spark(self) -> None:
        """Start the history job without waiting for it: it starts slowly."""
        command = [
            *caughtup_command(),
            *("pipeline", "history", "--config", str(self.settings_file)),
            *("--output", self.history.as_uri()),
            *("--checkpoint", (self.processes.directory / "checkpoint").as_uri()),
            *("--master", "local[1]", "--trigger-seconds", "10"),
        ]
        scratch = self.processes.directory / "spark"
        scratch.mkdir()
        self._spark = self.processes.start("history", command, _scratch_environment(scratch))

    def check_alive(self) -> None:
        """Raise CaughtupError when the service or the Spark job has ended by itself."""
        for process in (self._service, self._spark):
            if process is not None and process.exit_code is not None:
                raise CaughtupError(
                    "demo_failed",
                    f"{process.name} ended with {process.exit_code}: {process.first_error()}",
                )

    def page(self) -> View:
        """Return the state that the page shows."""
        state: View = json.loads(self._get("api/state"))
        return state

    def application_view(self, application: str = APPLICATION) -> View | None:
        """Return the page's view of an application; None before there is one."""
        views = self.page()["applications"]
        return next((view for view in views if view["group"] == application), None)

    def metrics(self) -> str:
        """Return ``/metrics``."""
        return self._get("metrics")

    def wait(
        self,
        what: str,
        ask: Callable[[], _Seen | None],
        seconds: float,
        process: Process | None = None,
    ) -> _Seen:
        """Wait until ``ask()`` returns a true value, and return it.

        Raises CaughtupError ``demo_failed`` after ``seconds``, or when a process has ended.
        """
        deadline = time.monotonic() + seconds
        while True:
            seen = ask()
            if seen:
                return seen
            self.check_alive()
            if time.monotonic() > deadline:
                raise CaughtupError("demo_failed", f"after {seconds:.0f} s still not: {what}")
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """End all processes and delete their directory."""
        for application in self.applications:
            application.close()
        self.processes.close()

    def _settings(self, settings: Mapping[str, str | int | list[str]]) -> str:
        given = {
            "bootstrap_servers": self.cluster.bootstrap_servers,
            "cluster_name": "demo",
            "web_port": self.web_port,
            "topic_replication_factor": 1,
            "end_offsets_interval": 0.5,
            "reassignments_interval": 1.0,
            **self._more_settings,
            **settings,
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
        lines += self._parameters()
        return "\n".join(lines) + "\n"

    def _parameters(self) -> list[str]:
        """Return the settings of the applications, as lines of TOML."""
        lines: list[str] = []
        for application in self.applications:
            for name, values in application.parameters.items():
                lines.append(f"[applications.{json.dumps(name)}]")
                changelogs = values.pop("changelogs")
                lines += [f"{json.dumps(key)} = {value}" for key, value in values.items()]
                lines.append(f"[applications.{json.dumps(name)}.changelogs]")
                lines += [f"{sub} = {json.dumps(topics)}" for sub, topics in changelogs.items()]
        return lines

    def _is_ready(self) -> bool:
        try:
            return self._get("ready").startswith("ready\n")
        except urllib.error.URLError:
            return False

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=_HTTP_SECONDS) as response:
            body: bytes = response.read()
        return body.decode()


def caughtup_command() -> list[str]:
    """Return the command that runs caughtup with this interpreter."""
    return [sys.executable, "-m", "caughtup.agents"]


def _scratch_environment(directory: Path) -> dict[str, str]:
    """Return an environment in which Spark keeps all temporary files in a directory.

    They are deleted with the directory, also when Spark is killed.
    """
    return {
        "TMPDIR": str(directory),
        "SPARK_LOCAL_DIRS": str(directory),
        "SPARK_SUBMIT_OPTS": " ".join((f"-Djava.io.tmpdir={directory}", *QUICK_START)),
        "SPARK_LAUNCHER_OPTS": " ".join(QUICK_START),
    }
