"""A watchdog process that ends child processes and removes directories when its parent has ended.

It is run as a script and uses only the standard library, so that it starts in some 0.03 s.
It reads lines from standard input: ``process PID`` (a session leader to end) and ``directory
PATH`` (to remove). End of input means that the parent is done or dead, however it died; the
watchdog then ends those processes, removes those directories and exits.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time

GRACE_SECONDS = 3.0
"""How long a process has between SIGTERM and SIGKILL."""

_POLL_SECONDS = 0.02


def start_time(pid: int) -> str | None:
    """Return when a process started, in clock ticks since boot; None for a dead one or a zombie.

    A process id may be reused; the pair of id and start time is unique. See proc(5),
    ``/proc/pid/stat``: the name in parentheses may hold spaces and parentheses itself.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def end_processes(started: dict[int, str]) -> None:
    """End process groups by their leaders' ids: SIGTERM, then SIGKILL after GRACE_SECONDS.

    ``started``: each leader's start time; with another one, the id belongs to another process.
    """
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _alive(started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal_number)
        deadline = time.monotonic() + GRACE_SECONDS
        while _alive(started) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


def remove(directories: list[str]) -> None:
    """Remove directories; try again while a process that is being killed still writes there."""
    deadline = time.monotonic() + GRACE_SECONDS
    while directories and time.monotonic() < deadline:
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)
        directories = [directory for directory in directories if os.path.exists(directory)]
        time.sleep(_POLL_SECONDS if directories else 0)


def _alive(started: dict[int, str]) -> list[int]:
    return [pid for pid, when in sorted(started.items()) if start_time(pid) == when]


def main() -> None:
    """Collect processes and directories until the input ends; then end and remove them."""
    started: dict[int, str] = {}
    directories: list[str] = []
    for line in sys.stdin:
        kind, _, value = line.rstrip("\n").partition(" ")
        if kind == "directory":
            directories.append(value)
        elif kind == "process" and (when := start_time(int(value))) is not None:
            started[int(value)] = when
    end_processes(started)
    remove(directories)


if __name__ == "__main__":
    main()
