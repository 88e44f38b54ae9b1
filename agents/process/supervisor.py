"""End the process: on a signal, when a part of it breaks, and by force if it does not end.

A service of which only a part works is worse than one that has ended: nothing restarts it, and its
figures stand still and look normal. So a failure beyond repair is reported on ``/ready`` and
``/healthz``, and some seconds later the process has ended in any case. A thread of its own does
that: it gets the signals, and neither a busy event loop nor a call that never returns can delay it.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NoReturn, Self

from mode.supervisors import OneForOneSupervisor
from mode.types import ServiceT

from caughtup.agents.process.health import (
    EVENT_LOOP,
    OFFSETS,
    PUBLISHER,
    TICK_SECONDS,
    TOPICS_READER,
    Health,
)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: How long the process has to end by itself before it is ended by force.
END_SECONDS = 8.0
#: How long a part may stand still before it counts as broken. A reader's calls to brokers take up
#: to ten seconds, and several may follow in a row.
PATIENCE_SECONDS: Mapping[str, float] = {
    EVENT_LOOP: 30.0,
    OFFSETS: 120.0,
    TOPICS_READER: 120.0,
    PUBLISHER: 30.0,
}


class Supervisor:
    """Watches one run of the service, from before its start to the end of the process.

    A context manager. A first signal stops the service; a signal before it runs, or a second one,
    ends the process at once.
    """

    def __init__(self, patience_seconds: Mapping[str, float] = PATIENCE_SECONDS) -> None:
        self._patience = patience_seconds
        self._health = Health()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._done = threading.Event()
        #: The exit code, the time (monotonic) from which the process is ended by force, and why.
        self._code = 1
        self._deadline: float | None = None
        self._why = ""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        # Signals are blocked in every thread from here on, and wait for sigtimedwait.
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        threading.Thread(target=self._watch, name="supervisor", daemon=True).start()
        return self

    def __exit__(self, *problem: object) -> None:
        # An ending process is watched further: a thread that never returns keeps Python running.
        self._done.set()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    @asynccontextmanager
    async def serving(self, health: Health) -> AsyncIterator[asyncio.Event]:
        """Watch a service inside the context; yield the event that is set when it has to stop."""
        self._health, self._loop = health, asyncio.get_running_loop()
        beating = asyncio.create_task(self._beat(health))
        try:
            yield self._stop
        finally:
            beating.cancel()
            health.pulses.rest(EVENT_LOOP)

    def broke(self, why: str) -> None:
        """Record that a part broke beyond repair, and end the process."""
        if self._health.broken is None:
            self._health.broken = why
        self.end(1, f"the service broke: {why}")

    def end(self, code: int, why: str) -> None:
        """Stop the service; if the process does not end in 8 s, end it with this exit code."""
        with self._lock:
            if self._deadline is None:
                self._code, self._why = code, why
                self._deadline = time.monotonic() + END_SECONDS
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    async def _beat(self, health: Health) -> None:
        while True:
            health.pulses.beat(EVENT_LOOP)
            began = time.monotonic()
            await asyncio.sleep(TICK_SECONDS)
            health.late_seconds += max(0.0, time.monotonic() - began - TICK_SECONDS)

    def _watch(self) -> None:
        while not self._done.is_set() or self._deadline is not None:
            received = signal.sigtimedwait(_SIGNALS, TICK_SECONDS)
            # After SIGCONT, Python may return signals that were not sent, or no valid number.
            if received is not None and received.si_signo in _SIGNALS:
                self._signalled(signal.Signals(received.si_signo))
            if self._health.broken is not None:
                self.end(1, f"the service broke: {self._health.broken}")
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._force(f"{self._why}; it did not end within {END_SECONDS:.0f} s")
            self._look_for_stuck_parts()

    def _signalled(self, received: signal.Signals) -> None:
        code = 128 + received
        if self._loop is None or self._deadline is not None:
            os._exit(code)
        self.end(code, f"received {received.name}")

    def _look_for_stuck_parts(self) -> None:
        for part, ticks in self._health.pulses.tick().items():
            still_seconds = ticks * TICK_SECONDS
            if still_seconds < self._patience[part]:
                continue
            why = f"the {part} has stood still for {still_seconds:.0f} s"
            if part == EVENT_LOOP:
                faulthandler.dump_traceback(sys.__stderr__ or 2)
                self._force(f"the service broke: {why}")
            self._health.pulses.rest(part)
            self.broke(why)

    def _force(self, why: str) -> NoReturn:
        sys.stderr.write(f"caughtup: {why}\n")
        sys.stderr.flush()
        os._exit(self._code)


class AgentSupervisor(OneForOneSupervisor):
    """Ends the service when an agent fails.

    Faust would restart the agent, without the event that it was working on, again and again. An
    agent that Faust cancels, as it does when the app stops, just ends.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    async def restart_service(self, service: ServiceT) -> None:
        """Crash the app with the agent's error."""
        reason = service.crash_reason
        if not isinstance(reason, asyncio.CancelledError):
            await self.crash(reason or RuntimeError("an agent ended"))


def describe(error: BaseException | None) -> str:
    """Describe an error, and where it was raised, in one line."""
    if error is None:
        return "for an unknown reason"
    said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    frames = traceback.extract_tb(error.__traceback__)
    return (
        f"{said} ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else said
    )
