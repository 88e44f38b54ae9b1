"""Measure the turns of an event loop: the CPU time of its thread in each callback."""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio import events
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

from caughtup.models.errors import CaughtupError

WAIT_SECONDS = 300.0
_LOOK_SECONDS = 0.05


async def until(is_done: Callable[[], object], what: str) -> None:
    """Wait until a condition holds. Raises CaughtupError ``timed_out`` with ``what``."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            raise CaughtupError("timed_out", f"after {WAIT_SECONDS:.0f} s still not: {what}")
        await asyncio.sleep(_LOOK_SECONDS)


#: The coroutines that wrap every coroutine of a service or an agent.
_WRAPPERS = frozenset({"Service._execute_task", "Agent._execute_actor"})


class Turn(NamedTuple):
    """A callback of the loop, with its CPU time in seconds."""

    seconds: float
    what: str


class LoopTurns:
    """Measures the turns of the present thread's event loop inside the context.

    ``longest``: since the last ``reset``. ``seconds``: the sum of all. The CPU time of other threads
    does not count, although they share the interpreter's lock.
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self.longest = Turn(0.0, "")
        self.seconds = 0.0
        self._clock = clock
        self._run = events.Handle._run

    def reset(self) -> None:
        """Forget all turns so far."""
        self.longest, self.seconds = Turn(0.0, ""), 0.0

    def __enter__(self) -> Self:
        loop_thread = threading.get_ident()
        run = self._run

        def timed(handle: events.Handle) -> None:
            if threading.get_ident() != loop_thread:
                run(handle)
                return
            before = self._clock()
            run(handle)
            took = self._clock() - before
            self.seconds += took
            if took > self.longest.seconds:
                self.longest = Turn(took, _name(handle))

        events.Handle._run = timed  # type: ignore[method-assign, assignment]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        events.Handle._run = self._run  # type: ignore[method-assign]


def _name(handle: events.Handle) -> str:
    """Return the name of a handle's function, or of its task's coroutines, outermost first."""
    callback: object = handle._callback  # type: ignore[attr-defined]
    owner = getattr(callback, "__self__", None)
    if not isinstance(owner, asyncio.Task):
        return str(getattr(callback, "__qualname__", callback))
    names: list[str] = []
    inner: Any = owner.get_coro()
    while (code := getattr(inner, "cr_code", None)) is not None:
        names.append(code.co_qualname)
        inner = inner.cr_await
    return " › ".join(name for name in names if name not in _WRAPPERS) or names[0]
