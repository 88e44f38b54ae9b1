"""What goes on beside a run, in threads of its own, until it is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from caughtup.demo.processes.children import ClosedOnExit

_LAST_SECONDS = 30


class Threads(ClosedOnExit):
    """Runs functions with their arguments, a thread each; ``stop`` tells them to end."""

    def __init__(self, *targets: tuple[Callable[..., None], *tuple[Any, ...]]) -> None:
        self.stop = threading.Event()
        self._threads = [
            threading.Thread(target=target, args=arguments, daemon=True)
            for target, *arguments in targets
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop."""
        self.stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_LAST_SECONDS)
