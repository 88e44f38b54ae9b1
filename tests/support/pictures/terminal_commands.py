"""Real commands on a simulated cluster, and their output on a terminal."""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from unittest.mock import patch

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from caughtup.agents.cli.explain import main as explaining
from caughtup.agents.cli.simulate import groups as simulating
from caughtup.agents.main import main
from tests.support.pictures.played_cluster import NOW_MS, Cluster
from tests.support.pictures.shots import served

#: The service's name in the recording.
SERVICE = "http://caughtup:8080"
COLUMNS, LINES = 120, 34
_TERMINAL = {
    "COLUMNS": str(COLUMNS),
    "LINES": str(LINES),
    "FORCE_COLOR": "1",
    "TERM": "xterm-256color",
}


class _Terminal(io.StringIO):
    """Captures output; programs take it for a terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def service_of(cluster: Cluster) -> Iterator[str]:
    """Serve a cluster to the commands; yield the address."""
    address: list[str] = []
    there, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with served(cluster) as url:
            address.append(url)
            there.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        there.wait(20)
        yield address[0]
    finally:
        over.set()
        thread.join()


def printed(cluster: Cluster, command: str, address: str) -> list[list[Segment]]:
    """Run a command of ``caughtup``; return its lines of output, in their colours.

    Commands that read a cluster get the simulated one.
    """
    arguments = command.replace(SERVICE, address).split()[1:]
    out = _Terminal()
    with (
        patch.dict(os.environ, _TERMINAL),
        patch.object(explaining, "read_snapshot", lambda *_: cluster.state),
        patch.object(simulating, "read_snapshot", lambda *_: cluster.state),
        patch.object(simulating, "now_ms", lambda: NOW_MS),
        redirect_stdout(out),
        suppress(SystemExit),  # the exit status says what was found
    ):
        main(arguments, "caughtup", standalone_mode=False)
    console = Console(width=COLUMNS, file=io.StringIO())
    return [list(Text.from_ansi(line).render(console)) for line in out.getvalue().splitlines()]
