"""Run ``caughtup`` in a separate process, without the second that importing it takes.

A program that has imported all commands forks for each request: the fork has its own directory,
environment, output and exit status. ``python -m tests.support.forks FD`` is that program, one for
each worker of the tests. ``run`` waits for the fork's end; a ``Fork`` goes on, as a service does.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

_ROOT = Path(__file__).parents[2]
#: The variables of every fork. Tests that need others start a new process.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(_ROOT)}
#: Commands that import Spark or other libraries that most commands don't use.
_APART = {"bench", "demo", "history", "pipeline", "replay", "top"}
_REQUEST_BYTES = 1 << 16
_starting = Lock()


def fits(environment: Mapping[str, str]) -> bool:
    """Return whether a fork can get these variables: none is read before caughtup runs."""
    return all(name.startswith("CAUGHTUP_") or name == "COLUMNS" for name in environment)


def run(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str], seconds: float
) -> tuple[int, str, str]:
    """Run ``caughtup`` in a directory; return its exit status and its output.

    Raises subprocess.TimeoutExpired after ``seconds``, as ``subprocess.run`` does.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given, files = ENVIRONMENT | {**environment}, [out.fileno(), err.fileno()]
        fork = Fork(arguments, directory, given, files)
        try:
            code = fork.wait(seconds)
        except subprocess.TimeoutExpired:
            os.kill(fork.pid, signal.SIGKILL)
            raise
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return code, texts[0], texts[1]


class Fork:
    """A fork that runs ``caughtup``, with what ``Process`` calls of a ``subprocess.Popen``.

    ``files``: its standard output and standard error; with a third one it leads a session of its
    own, and writes ``process PID`` there before anything else. ``module``: what it runs instead of
    ``caughtup``, as ``python -m`` does.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        files: Sequence[int],
        module: str = "",
    ) -> None:
        self._arguments = arguments
        self._code: int | None = None
        #: Held by the one thread that waits; to others the process runs meanwhile.
        self._waiting = Lock()
        request = {"argv": [*arguments], "cwd": str(directory), "env": {**environment}}
        request["module"] = module
        self._asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asked.connect(_address())
        socket.send_fds(self._asked, [json.dumps(request).encode()], files)
        self.pid = int(self._asked.recv(64))

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends, and return its exit code; raises subprocess.TimeoutExpired."""
        late = subprocess.TimeoutExpired(["caughtup", *self._arguments], timeout or 0.0)
        if not self._waiting.acquire(timeout=-1 if timeout is None else timeout):
            raise late
        try:
            if self._code is None:
                self._asked.settimeout(timeout)
                self._code = os.waitstatus_to_exitcode(int(self._asked.recv(64)))
                self._asked.close()
            return self._code
        except (TimeoutError, BlockingIOError):
            raise late from None
        finally:
            self._waiting.release()

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def terminate(self) -> None:
        """Send SIGTERM."""
        os.kill(self.pid, signal.SIGTERM)


def _address() -> str:
    with _starting:
        return _started()


@cache
def _started() -> str:
    """Start the program, which ends with this process; return its address."""
    address = f"\0caughtup-tests-{os.getpid()}-{os.urandom(8).hex()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forks", str(listener.fileno())],
            cwd=_ROOT,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,  # of a kind that cannot seek: a fork's may be a terminal
            pass_fds=[listener.fileno()],
        )
    assert program.stdin is not None
    atexit.register(program.wait)
    atexit.register(program.stdin.close)
    return address


def _import_commands() -> None:
    from caughtup.agents.cli.commands import LazyCommand
    from caughtup.agents.main import main

    for name, command in main.commands.items():
        if name not in _APART and isinstance(command, LazyCommand):
            command.load()


def _wait_for_requests(listener: socket.socket) -> str:
    """Serve requests; return only in a fork that is to run a command, or the module returned."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    while True:
        readable, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in readable:
            os._exit(0)
        asked, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _become(asked)
        asked.close()


def _become(asked: socket.socket) -> str:
    """Return in a fork that is set up as requested; the parent reports its exit status.

    Returns the module that the fork is to run, none for ``caughtup``.
    """
    text, (out, err, *announced), _, _ = socket.recv_fds(asked, _REQUEST_BYTES, 3)
    if process := os.fork():
        for number in (out, err, *announced):
            os.close(number)
        with suppress(BrokenPipeError):  # who asked may have ended
            asked.send(str(process).encode())
            _, status = os.waitpid(process, 0)
            asked.send(str(status).encode())
        os._exit(0)
    asked.close()
    for number in announced:
        os.setsid()
        os.write(number, f"process {os.getpid()}\n".encode())
        os.close(number)
    request = json.loads(text)
    for given, number in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(given, number)
        os.close(given)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv[1:] = request["argv"]
    return str(request["module"])


if __name__ == "__main__":
    gc.disable()
    _import_commands()
    gc.collect()
    gc.freeze()  # no fork has to search them for garbage, least of all at its end
    gc.enable()
    if module := _wait_for_requests(socket.socket(fileno=int(sys.argv[1]))):
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        from caughtup.agents.main import program

        program()
