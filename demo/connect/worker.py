"""A distributed Connect worker of the published jars, in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from caughtup.demo.cluster.broker_config import properties_text
from caughtup.demo.connect.rest import RestClient
from caughtup.demo.processes.children import Process, Processes
from caughtup.pipelines.java.command_lines import java_command
from caughtup.pipelines.java.jars import connect_classpath

HEAP_MEGABYTES = 192
_JOINING = "(Re-)joining group (WorkerCoordinator)"
_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"


class ConnectWorker:
    """A worker that was started; its client id is its name, by which its group knows it."""

    def __init__(
        self,
        name: str,
        port: int,
        processes: Processes,
        properties: Mapping[str, str],
        directory: Path,
    ) -> None:
        """Start it. Raises JavaMissing or JarsUnavailable."""
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
        """Whether its process is there."""
        return self.process.exit_code is None

    def has_started(self) -> bool:
        """Return whether it has begun to read its topics; it joins its group once it has."""
        return "Herder starting" in self.process.output()

    def has_joined(self) -> bool:
        """Return whether it has asked to join its group by the member id that it was given."""
        # At first it asks without one, and is given it.
        return self.process.output().count(_JOINING) > 1

    def leave(self) -> None:
        """End it as an operator does: it stops its tasks, and leaves its group."""
        self.process.terminate()

    def kill(self) -> None:
        """End it with SIGKILL: its group misses it after its session."""
        self.process.kill()

    def suspend(self) -> None:
        """Have it stand still, its heartbeats included (SIGSTOP)."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on (SIGCONT)."""
        os.kill(self.process.pid, signal.SIGCONT)
