"""``caughtup`` as operators run it: the service as a process, and commands with their output."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from caughtup.demo.cluster.broker_config import Security
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import Process, Processes, free_ports
from caughtup.demo.story.stage import caughtup_command
from tests.support import forks

SECONDS = 60.0

#: Errors of a cluster without __consumer_offsets yet, or after the loss of a broker.
_NOT_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError._TIMED_OUT,
)
_Seen = TypeVar("_Seen")


def wait_for(what: str, ask: Callable[[], _Seen | None], seconds: float = SECONDS) -> _Seen:
    """Call ``ask`` until it returns a true value, and return that."""
    began = time.monotonic()
    while not (seen := ask()):
        waited = time.monotonic() - began
        assert waited < seconds, f"after {seconds:.0f} s still not: {what}"
        # What takes long is asked less often: each answer costs who gives it.
        time.sleep(0.05 if waited < 1 else 0.1)
    return seen


class Ran(NamedTuple):
    """A command that has ended, with its output."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its output, as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def message(self) -> str:
        """The one line that a failed command must print on standard error."""
        assert self.code != 0, self
        (line,) = self.err.splitlines()
        assert line.startswith("caughtup: "), self
        assert "Traceback" not in self.out, self
        return line.removeprefix("caughtup: ")


def caughtup(
    *arguments: str | Path,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    seconds: float = 180.0,
) -> Ran:
    """Run a command in a directory; its environment is only the search path and ``environment``.

    The test fails if it has not ended after ``seconds``: some tests run ten at once. It is a fork
    of a process that has imported caughtup, unless the environment has variables that Python or a
    library reads at its start.
    """
    words, given = [str(argument) for argument in arguments], environment or {}
    began = time.monotonic()
    if forks.fits(given):
        return Ran(*forks.run(words, directory, given, seconds), time.monotonic() - began)
    ran = subprocess.run(
        [*caughtup_command(), *words],
        cwd=directory,
        env={**forks.ENVIRONMENT, **given},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr, time.monotonic() - began)


def settings_file(
    directory: Path, bootstrap_servers: str, kafka: Mapping[str, object], **settings: object
) -> Path:
    """Write a settings file; values are JSON, whose scalars and lists are valid TOML."""
    lines = [
        f"{name} = {json.dumps(value)}"
        for name, value in {"bootstrap_servers": bootstrap_servers, **settings}.items()
    ]
    lines += ["[kafka]", *(f'"{name}" = {json.dumps(value)}' for name, value in kafka.items())]
    path = directory / f"caughtup-{uuid.uuid4().hex[:8]}.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


class Beside(Protocol):
    """A cluster as a service needs it: an ``EmbeddedCluster``, or one that is seen through a network."""

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def processes(self) -> Processes: ...

    @property
    def security(self) -> Security: ...


class Service:
    """``caughtup run`` beside a cluster; it ends with the cluster's processes at the latest.

    A context manager: entering starts it and waits until it is ready. Each service has its own
    ``application_id``, the prefix of its topics, by default, so that services don't share a group.
    It is a fork as commands are (see ``caughtup``), unless a ``command`` replaces it.
    """

    def __init__(
        self,
        cluster: Beside,
        *,
        user: str | None = None,
        application_id: str | None = None,
        command: Sequence[str] | None = None,
        **settings: object,
    ) -> None:
        self._command = command
        self.application_id = application_id or f"caughtup-{uuid.uuid4().hex[:8]}"
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}/"
        self._cluster = cluster
        self.settings_file = settings_file(
            cluster.processes.directory,
            cluster.bootstrap_servers,
            cluster.security.client_config(user),
            application_id=self.application_id,
            topic_prefix=f"{self.application_id}-",
            web_port=self.port,
            end_offsets_interval=0.3,
            **settings,
        )
        self._process: Process | None = None

    @property
    def process(self) -> Process:
        """The most recently started process."""
        assert self._process is not None
        return self._process

    @property
    def log(self) -> str:
        """The output of the most recently started process."""
        return self.process.output()

    def topic(self, name: str) -> str:
        """Return the full name of one of its own topics."""
        return f"{self.application_id}-{name}"

    def begin(self) -> None:
        """Start it without waiting."""
        processes, name = self._cluster.processes, f"{self.application_id}-{self.port}"
        arguments = ["run", "--config", str(self.settings_file)]
        if self._command is not None:
            self._process = processes.start(name, [*self._command, *arguments])
            return
        self._process = processes.launch(
            name,
            lambda output, announced: forks.Fork(
                arguments,
                processes.directory,
                os.environ,
                [output.fileno(), output.fileno(), announced.fileno()],
            ),
        )

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.begin()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until it is ready; fail if it ends instead."""
        wait_for("the service is ready", self._is_ready)

    def stop(self) -> int | None:
        """Terminate it, wait until it has ended, and return its exit code."""
        self.process.terminate()
        return self.process.exit_code

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.process.kill()

    def ready(self) -> bool:
        """Return whether ``/ready`` says that the service is ready."""
        try:
            return self._get("ready").startswith("ready\n")
        except urllib.error.HTTPError:
            return False

    def unready(self) -> str:
        """Return the text of ``/ready`` with status 503; empty for any other answer, or none."""
        try:
            self._get("ready")
        except urllib.error.HTTPError as error:
            return error.read().decode() if error.code == 503 else ""
        except urllib.error.URLError:
            pass
        return ""

    def metrics(self, name: str | None = None) -> list[Sample]:
        """Return every sample of ``/metrics``, or those of ``caughtup_NAME``."""
        text = self.metrics_text()
        if name is not None:
            # Waits ask often, and to parse all takes eight times as long as to ask.
            begins = (f"caughtup_{name}{{", f"caughtup_{name} ")
            text = "\n".join(line for line in text.split("\n") if line.startswith(begins))
        families = text_string_to_metric_families(f"{text}\n")
        return [sample for family in families for sample in family.samples]

    def metrics_text(self) -> str:
        """Return ``/metrics`` as it is."""
        return self._get("metrics")

    def value(self, name: str, **labels: object) -> float | None:
        """Return the only sample of ``caughtup_NAME`` with these labels; None if there is none."""
        wanted = {label: str(value) for label, value in labels.items()}.items()
        found = [sample.value for sample in self.metrics(name) if wanted <= sample.labels.items()]
        assert len(found) < 2, (name, labels, found)
        return found[0] if found else None

    def wait_value(self, expected: float | None, name: str, **labels: object) -> None:
        """Wait until a sample has a value, or for None until it is gone."""
        what = f"{name} {labels} is {expected}"
        wait_for(what, lambda: self.value(name, **labels) == expected)

    def wait_total(self, expected: float, name: str, **labels: object) -> None:
        """Wait until the samples with these labels have a sum."""
        wanted = {label: str(value) for label, value in labels.items()}.items()

        def total() -> float | None:
            found = [
                sample.value for sample in self.metrics(name) if wanted <= sample.labels.items()
            ]
            return sum(found) if found else None

        wait_for(f"{name} {labels} adds up to {expected}", lambda: total() == expected)

    def page(self) -> dict[str, Any]:
        """Return ``/api/state``."""
        state: dict[str, Any] = json.loads(self._get("api/state"))
        return state

    def lines(self, path: str) -> list[dict[str, Any]]:
        """Return the JSON lines at a path."""
        return [json.loads(line) for line in self._get(path).splitlines()]

    def connect(self, group: str) -> dict[str, list[dict[str, Any]]]:
        """Return the lines of a group's ``/api/connect``, by kind."""
        lines: dict[str, list[dict[str, Any]]] = {}
        for line in self.lines(f"api/connect?group={group}"):
            lines.setdefault(line["kind"], []).append(line)
        return lines

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.process.terminate(10)

    def _is_ready(self) -> bool:
        assert self.process.exit_code is None, f"it ended: {self.log}"
        try:
            return self.ready()
        except urllib.error.URLError:
            return False

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as response:
            body: bytes = response.read()
        return body.decode()


def commit(
    cluster: EmbeddedCluster, group: str, topic: str, offset: int, *, partition: int = 0
) -> None:
    """Commit an offset of a partition, as a group without members."""
    consumer = Consumer({**cluster.client_config(), "group.id": group})
    try:
        offsets = [TopicPartition(topic, partition, offset)]
        wait_for(f"{group} commits", lambda: _commits(consumer, offsets))
    finally:
        consumer.close()


def _commits(consumer: Consumer, offsets: list[TopicPartition]) -> bool:
    try:
        committed = consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() in _NOT_YET:
            return False
        raise
    return committed is not None and committed[0].error is None
