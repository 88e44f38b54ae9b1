"""Run ``caughtup`` in a separate process, without the second that importing it takes.

A program that has imported all commands forks for each request: the fork has its own directory,
environment, output and exit status. ``python -m tests.support.forks FD`` is that program, one for
each worker of the tests.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
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
    request = {"argv": list(arguments), "cwd": str(directory), "env": ENVIRONMENT | {**environment}}
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked,
    ):
        asked.connect(_address())
        socket.send_fds(asked, [json.dumps(request).encode()], [out.fileno(), err.fileno()])
        process = int(asked.recv(64))
        asked.settimeout(seconds)
        try:
            status = int(asked.recv(64))
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["caughtup", *arguments], seconds) from None
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return os.waitstatus_to_exitcode(status), texts[0], texts[1]


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
            stdout=subprocess.DEVNULL,
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


def _wait_for_requests(listener: socket.socket) -> None:
    """Serve requests; return only in a fork that is to run a command."""
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


def _become(asked: socket.socket) -> None:
    """Return in a fork that is set up as requested; the parent reports its exit status."""
    text, (out, err), _, _ = socket.recv_fds(asked, _REQUEST_BYTES, 2)
    if process := os.fork():
        asked.send(str(process).encode())
        _, status = os.waitpid(process, 0)
        asked.send(str(status).encode())
        os._exit(0)
    asked.close()
    request = json.loads(text)
    for given, number in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(given, number)
        os.close(given)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv[1:] = request["argv"]


if __name__ == "__main__":
    _import_commands()
    _wait_for_requests(socket.socket(fileno=int(sys.argv[1])))
    from caughtup.agents.main import program

    program()
