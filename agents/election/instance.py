"""Which process this is, said so that another on the same machine can tell when it is dead."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Self

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
#: Of /proc/PID/stat behind the program's name: the state, and when it started, in clock ticks.
_STATE, _STARTED = 0, 19
_ENDED = ("Z", "X")


class Instance(msgspec.Struct, frozen=True):
    """A process: where it runs, its id there, and when it started in ticks since the boot.

    ``place`` is the boot of a machine and the namespace of process ids within it: only who has
    the same sees the same processes. None where the system doesn't tell (it isn't Linux).
    """

    host: str
    pid: int
    place: str | None = None
    started: int | None = None

    @classmethod
    def current(cls) -> Self:
        """Describe this process."""
        seen = _look(os.getpid())
        return cls(socket.gethostname(), os.getpid(), _place(), seen[1] if seen else None)

    @property
    def name(self) -> str:
        """Its name for people: host:pid."""
        return f"{self.host}:{self.pid}"

    def is_dead(self) -> bool:
        """Return whether it is certain that this process has ended; False where it can't be known."""
        if self.place is None or self.place != _place():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False  # it is there, and another user's
        seen = _look(self.pid)
        if seen is None or self.started is None:
            return False
        state, started = seen
        return state in _ENDED or started != self.started


def _place() -> str | None:
    try:
        return f"{_BOOT_ID.read_text().strip()} {_NAMESPACE.readlink()}"
    except OSError:
        return None


def _look(pid: int) -> tuple[str, int] | None:
    """Read a process's state, and when it started; None where that isn't for us to see."""
    try:
        # The program's name, in parentheses, may have any bytes in it.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[_STATE].decode(), int(fields[_STARTED])
    except (OSError, ValueError, IndexError):
        return None
