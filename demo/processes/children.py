"""Child processes that never outlive this one, whichever way it ends, and free ports for them."""

from __future__ import annotations

import os
import random
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Protocol, Self

from caughtup.demo.processes import watchdog


class ClosedOnExit(ABC):
    """Makes a context manager of a class with ``close()``."""

    @abstractmethod
    def close(self) -> None:
        """End what was started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


_LOWEST = 20_000
# Not the module's generator: property tests seed it, and two processes would choose the same ports.
_RANDOM = random.SystemRandom()
#: The latest ports that this process claims: each is an open socket.
_CLAIMED = 128
_claims: deque[socket.socket] = deque()
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 on which nothing listens.

    They lie below the range that the kernel takes outgoing connections' ports from, so a server
    finds its port still free seconds later, and again when it is restarted. No other process gets
    them from this function while this one lives, nor does this one among its next 128.
    """
    highest = _first_ephemeral_port() - 1
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            wanted = _RANDOM.randint(_LOWEST, highest) if highest > _LOWEST else 0
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            port = candidate.getsockname()[1]
            if _claim(port):
                ports.append(port)
        return ports


def _claim(port: int) -> bool:
    """Claim a port among the processes that call ``free_ports``, until its server listens.

    A name in Linux's abstract namespace of sockets, which ends with the process however it ends.
    """
    if sys.platform != "linux":
        return True
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0caughtup-port-{port}")
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    if len(_claims) > _CLAIMED:
        _claims.popleft().close()
    return True


def _first_ephemeral_port() -> int:
    try:
        return int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768


_KILLED_SECONDS = 30.0
_LOGGED_ERROR = re.compile(r"\b(?:ERROR|FATAL)\b(.*)")
_THROWN = re.compile(
    r"(?:Exception in thread \"\S+\" )?((?:[\w$]+\.)+[\w$]+(?:Exception|Error)\b.*)"
)
# The shell sends its id to the watchdog before it becomes the program, so that the watchdog always
# knows of a running program. $0 is unused, "$@" is the program.
_ANNOUNCED = 'echo "process $$" >&0; exec "$@" </dev/null'


class Started(Protocol):
    """What is needed of a ``subprocess.Popen``."""

    @property
    def pid(self) -> int:
        """The process id."""

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends, and return its exit code."""

    def terminate(self) -> None:
        """Send SIGTERM."""


class Process:
    """A running or ended child, with its log."""

    def __init__(self, name: str, popen: Started, log: Path, log_start: int) -> None:
        self.name = name
        self.log = log
        self._log_start = log_start
        self._popen = popen

    @property
    def pid(self) -> int:
        """The process id, which is its session's id too."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code (negative: the signal that ended it), or None while it runs."""
        return self._popen.poll()

    def wait(self) -> int:
        """Wait until it ends by itself, and return its exit code."""
        return self._popen.wait()

    def terminate(self, timeout_seconds: float = 30.0) -> None:
        """Send SIGTERM, wait, and kill the process if it has not ended in time."""
        if self.exit_code is None:
            self._popen.terminate()
            try:
                self._popen.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Kill it (SIGKILL), with all processes of its session."""
        if self.exit_code is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait(_KILLED_SECONDS)

    def output(self) -> str:
        """Return its output so far, without that of earlier processes with the same log."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._log_start)
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    def first_error(self) -> str:
        """Return the first error of this run in the log, and its exception, in one line.

        The first, because later ones are mostly its consequences. Without any, the log's last
        line, or ''.
        """
        lines = self.output().splitlines()
        error = thrown = ""
        for line in lines:
            if match := _LOGGED_ERROR.search(line):
                if error:
                    break
                error = match[1].strip()
            elif match := _THROWN.match(line):
                thrown = match[1].strip()
                break
        spoken = [line.strip() for line in lines if line.strip()]
        return ": ".join(part for part in (error, thrown) if part) or (spoken or [""])[-1]


class Processes(ClosedOnExit):
    """A temporary directory and child processes, which end when it is closed or this process dies.

    Children run in sessions of their own, so a Ctrl-C at the terminal reaches this process only; a
    watchdog ends them and removes the directory when this process closes its end of a pipe, or is
    ended by any signal.
    """

    def __init__(self) -> None:
        self._children: list[Process] = []
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert self._watchdog.stdin is not None
        self._to_watchdog = self._watchdog.stdin
        self.directory = Path(tempfile.gettempdir(), f"caughtup-{secrets.token_hex(6)}").absolute()
        # Announced before it is created, for the same reason as a process.
        self._to_watchdog.write(f"directory {self.directory}\n".encode())
        self.directory.mkdir(mode=0o700)

    def start(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program whose output goes to ``NAME.log`` in the directory, appended.

        ``environment`` is added to this process's own. A program that cannot be run ends with
        exit code 126 or 127, and the log says why.
        """
        return self.launch(
            name,
            lambda output, announced: subprocess.Popen(
                ["/bin/sh", "-c", _ANNOUNCED, "sh", *(os.fspath(part) for part in command)],
                stdin=announced,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            ),
        )

    def launch(self, name: str, program: Callable[[IO[bytes], IO[bytes]], Started]) -> Process:
        """Start a program by a function of the files for its output and for its process id.

        It leads a session of its own, and its id is announced to the watchdog before it runs.
        """
        log = self.directory / f"{name}.log"
        with log.open("ab") as output:
            log_start = output.tell()
            child = Process(name, program(output, self._to_watchdog), log, log_start)
        self._children.append(child)
        return child

    def close(self) -> None:
        """End every child, remove the directory; does nothing the second time."""
        if not self._to_watchdog.closed:
            self._to_watchdog.close()
            self._watchdog.wait(2 * watchdog.GRACE_SECONDS + _KILLED_SECONDS)
            for child in self._children:
                child.kill()
