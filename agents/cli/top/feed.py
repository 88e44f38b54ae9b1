"""A thread that asks a source repeatedly, so that keys are handled meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from caughtup.agents.cli.top.sources import Source
from caughtup.agents.errors import UserError
from caughtup.agents.web.page.parts import WholeView
from caughtup.models.shown.lag import Line


class Answered(NamedTuple):
    """A source's answer at ``at`` (monotonic s); ``lines`` are those of the open ``group``."""

    at: float
    state: WholeView
    group: str | None
    lines: list[Line] | None


class Failed(NamedTuple):
    """A failed attempt, the last one if ``broken`` is set."""

    why: str
    broken: BaseException | None = None


class Feed:
    """Asks a source every few seconds, and passes the answers to ``deliver``, from its own thread.

    The thread is a daemon: a source that never answers doesn't keep the process alive.
    """

    def __init__(
        self, source: Source, seconds: float, deliver: Callable[[Answered | Failed], object]
    ) -> None:
        self._source = source
        self._seconds = seconds
        self._deliver = deliver
        self._group: str | None = None
        self._ask = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def open(self, group: str | None) -> None:
        """Ask at once, also for the lines of a group, None for no group."""
        self._group = group
        self._ask.set()

    def ask(self) -> None:
        """Ask at once."""
        self._ask.set()

    def stop(self, seconds: float = 1.0) -> None:
        """Stop asking, and wait ``seconds`` for the thread to end."""
        self._stopped = True
        self._ask.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopped:
            self._ask.clear()
            answer = self._answer()
            if self._stopped:
                break
            self._deliver(answer)
            if isinstance(answer, Failed) and answer.broken is not None:
                break
            self._ask.wait(self._seconds)
        self._source.close()

    def _answer(self) -> Answered | Failed:
        group = self._group
        try:
            state = self._source.state()
            lines = None if group is None else self._source.lines(group)
        except UserError as error:
            return Failed("; ".join(error.messages))
        except Exception as error:  # noqa: BLE001 - raised on the screen's thread
            return Failed(repr(error), error)
        return Answered(time.monotonic(), state, group, lines)
