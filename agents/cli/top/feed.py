"""A thread that asks again and again, so that keys are answered meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from caughtup.agents.cli.top.sources import Source
from caughtup.agents.errors import UserError
from caughtup.agents.web.page.parts import WholeView
from caughtup.models.shown.lag import Line


class Seen(NamedTuple):
    """What a source said at ``at`` (monotonic s); ``lines`` of ``group``, if one is opened."""

    at: float
    state: WholeView
    group: str | None
    lines: list[Line] | None


class Failed(NamedTuple):
    """Why it said nothing: for now, or with ``broken`` for good."""

    why: str
    broken: BaseException | None = None


class Feed:
    """Asks a source every few seconds and tells what it said, in order, from its own thread.

    A source that takes long, or never answers, holds nobody up: the thread ends with the process.
    """

    def __init__(
        self, source: Source, seconds: float, tell: Callable[[Seen | Failed], object]
    ) -> None:
        self._source = source
        self._seconds = seconds
        self._tell = tell
        self._group: str | None = None
        self._ask = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def open(self, group: str | None) -> None:
        """Ask for the lines of a group, too, at once; None: for those of none."""
        self._group = group
        self._ask.set()

    def ask(self) -> None:
        """Ask at once."""
        self._ask.set()

    def stop(self, seconds: float = 1.0) -> None:
        """Ask no more; wait a moment for an answer that is under way."""
        self._stopped = True
        self._ask.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopped:
            self._ask.clear()
            said = self._asked()
            if self._stopped:
                break
            self._tell(said)
            if isinstance(said, Failed) and said.broken is not None:
                break
            self._ask.wait(self._seconds)
        self._source.close()

    def _asked(self) -> Seen | Failed:
        group = self._group
        try:
            state = self._source.state()
            lines = None if group is None else self._source.lines(group)
        except UserError as error:
            return Failed("; ".join(error.messages))
        except Exception as error:  # noqa: BLE001 - told on the screen's own thread, which ends
            return Failed(repr(error), error)
        return Seen(time.monotonic(), state, group, lines)
