"""From the built wheel to a watched cluster, by each login, with not one ACL more than is asked for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AclOperation, ResourceType

from caughtup.demo.processes.children import free_ports
from tests.support.kafka.acls import DESCRIBE, Allowed, allow, topic
from tests.support.kafka.keystores import broker_files
from tests.support.kafka.logins import PASSWORD, Guarded, Login
from tests.support.kafka.tokens import TokenEndpoint
from tests.support.kafka.topics import words_read
from tests.support.service import settings_file, wait_for

ROOT = Path(__file__).resolve().parents[2]
#: By whom each login is: users that nobody has allowed anything.
STRANGERS = {"SCRAM-SHA-512": "scram", "OAUTHBEARER": "oauth", "PKCS #12": "mutual"}
#: What stands for no right of its own: without it the lag of groups isn't known.
_LAG = topic("*", DESCRIBE)
_MISSING = re.compile(r"missing: ([A-Z_, ]+) on the (topic|group|cluster)(?: (\S+))?")
_KINDS = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP}


class Step(NamedTuple):
    """What was done, and how long it took."""

    seconds: float
    what: str


def play(directory: Path) -> Iterator[Step]:
    """Do it all in a directory, and yield each step once it is done. Raises AssertionError."""
    began = time.monotonic()

    def step(what: str) -> Step:
        nonlocal began
        took, began = time.monotonic() - began, time.monotonic()
        return Step(took, what)

    wheel = _built(directory)
    yield step(f"{wheel.name} is built")
    program = _installed(wheel, directory)
    yield step("it is installed in an empty environment")
    with TokenEndpoint({}) as tokens, Guarded(broker_files(directory), tokens) as cluster:
        words_read(cluster, 10, 4)
        yield step("a cluster that refuses everything is up")
        for mechanism, user in STRANGERS.items():
            stranger = _Stranger(program, cluster, cluster.login(mechanism, user, directory), user)
            granted = stranger.is_allowed_what_check_names()
            yield step(
                f"{mechanism}: `caughtup check` named {len(granted)} rights, one after the other"
            )
            stranger.runs()
            yield step(f"{mechanism}: `caughtup run` is ready, and the lag is right")
        opened = {name: len(hellos) for name, hellos in cluster.hellos.items()}
        assert all(opened.values()), opened
        assert not cluster.unencrypted()
        yield step(f"{sum(opened.values())} connections, each begun with TLS")


class _Stranger:
    def __init__(self, program: Path, cluster: Guarded, login: Login, user: str) -> None:
        self._program = program
        self._cluster = cluster
        self._user = user
        self._admin = cluster.admin()
        self._port = free_ports(1)[0]
        self._settings = settings_file(
            program.parents[2],
            login.bootstrap_servers,
            login.kafka,
            application_id=f"caughtup-{user}",
            topic_prefix=f"caughtup-{user}-",
            web_port=self._port,
        )

    def is_allowed_what_check_names(self) -> list[str]:
        """Allow the first thing that is missing, until nothing is: each is named until it is."""
        granted: list[str] = []
        expected = self._missing()
        assert expected, "a stranger may do nothing"
        while expected:
            first = expected.pop(0)
            found = _MISSING.fullmatch(first)
            assert found is not None, first
            operations = tuple(AclOperation[name] for name in found[1].split(", "))
            kind, name = _KINDS.get(found[2], ResourceType.BROKER), found[3] or "kafka-cluster"
            allow(self._admin, self._user, Allowed(kind, name, operations))
            granted.append(first)
            left = self._missing_without(first)
            # What is no longer refused may show what was hidden behind it, of the same resource.
            news = [line for line in left if line not in expected]
            assert [line for line in left if line in expected] == expected, (first, left)
            assert all(line.endswith(f"{found[2]} {found[3]}") for line in news), (first, news)
            expected = left
        return granted

    def runs(self) -> None:
        """Run the service until it knows the lag of the group that is there."""
        allow(self._admin, self._user, _LAG)
        process = self._cluster.processes.start(
            f"stranger-{self._user}", [self._program, "run", "--config", self._settings]
        )
        wait_for(
            f"it is ready: {process.output()}",
            lambda: 'group="readers",topic="words",partition="0"} 6' in self._answer("metrics"),
        )
        assert self._answer("ready").startswith("ready\n")
        process.terminate(10)
        assert process.exit_code == 0
        assert PASSWORD not in process.output()

    def _missing(self) -> list[str]:
        ran = subprocess.run(
            [self._program, "check", "--format", "json", "--config", self._settings],
            cwd=self._settings.parent,
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        findings = [json.loads(line) for line in ran.stdout.splitlines()]
        assert findings, ran.stderr
        assert PASSWORD not in ran.stdout + ran.stderr
        refused = [finding["detail"] for finding in findings if not finding["ok"]]
        assert (ran.returncode == 0) == (not refused), ran.stderr
        return [*dict.fromkeys(refused)]

    def _missing_without(self, line: str) -> list[str]:
        """Ask until brokers know of an ACL: they learn of it a moment after the controller."""
        deadline = time.monotonic() + 30
        while line in (left := self._missing()):
            assert time.monotonic() < deadline, line
        return left

    def _answer(self, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{path}", timeout=10) as got:
                return str(got.read().decode())
        except (urllib.error.URLError, ConnectionError):
            return ""


def _built(directory: Path) -> Path:
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", directory, ROOT)
    (wheel,) = directory.glob("*.whl")
    return wheel


def _installed(wheel: Path, directory: Path) -> Path:
    """Install it as people do, with the extra for PKCS #12, and return the program."""
    _run(sys.executable, "-m", "venv", directory / "venv")
    python = directory / "venv/bin/python"
    _run(python, "-m", "pip", "--disable-pip-version-check", "install", f"{wheel}[pkcs12]")
    return directory / "venv/bin/caughtup"


def _run(*command: str | Path) -> None:
    ran = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
