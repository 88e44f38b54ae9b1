"""A program on a pseudo-terminal: its output, key presses, and the modes that it leaves."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

_ROOT = Path(__file__).parents[2]
#: Escape sequences of cursor movements, colours and modes.
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|[()][0-9A-B]|[=>78]|\][^\x07]*\x07)")
SECONDS = 30.0


class Terminal:
    """A program on a pseudo-terminal. A context manager: leaving it kills the program."""

    def __init__(
        self,
        command: Sequence[str],
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
        directory: Path = _ROOT,
    ) -> None:
        self._ours, theirs = pty.openpty()
        self._theirs = theirs  # held, so that what the program wrote last can be read
        self.resize(columns, lines)
        self.before = termios.tcgetattr(theirs)
        known = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            command,
            cwd=directory,
            env={
                **known,
                "TERM": "xterm-256color",
                "PYTHONPATH": str(_ROOT),
                **(environment or {}),
            },
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        self.written = b""

    @property
    def text(self) -> str:
        """All output so far, without escape sequences."""
        return ESCAPES.sub("", self.written.decode(errors="replace"))

    @property
    def modes(self) -> list[Any]:
        """The terminal's modes, as shown by stty."""
        return termios.tcgetattr(self._theirs)

    def resize(self, columns: int, lines: int) -> None:
        """Resize the terminal, as when its window is resized."""
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if hasattr(self, "process"):
            os.killpg(self.process.pid, signal.SIGWINCH)

    def press(self, keys: str) -> None:
        """Type keys."""
        os.write(self._ours, keys.encode())

    def read(self, seconds: float = 0.2) -> None:
        """Read the output of the next ``seconds``."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self._ours], [], [], left)
            if ready:
                self.written += os.read(self._ours, 1 << 16)

    def wait_for(self, said: str, seconds: float = SECONDS, since: int = 0) -> None:
        """Wait until a text is printed; ``since``: the length of ``text`` before it."""
        deadline = time.monotonic() + seconds
        while said not in self.text[since:]:
            assert time.monotonic() < deadline, (
                f"not written: {said!r} in {self.text[since:][-3000:]!r}"
            )
            self.read(0.1)

    def ended(self, seconds: float = SECONDS) -> int:
        """Wait until the program has ended; return its exit status."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it goes on: {self.text[-1000:]!r}"
            self.read(0.05)  # it may wait for somebody to read
        self.read()
        return self.process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)
