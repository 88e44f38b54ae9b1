"""Costly requests: equal ones are answered once, few wait, abandoned ones are cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from aiohttp import web

from caughtup.agents.web.door.refusals import Many, Refusals

Answer = TypeVar("Answer")


class Unanswerable(Exception):  # noqa: N818 - it is an answer
    """A question that can't be answered: the HTTP status, and the reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Questions:
    """Answers one question at a time, or ``at_once`` of them, in the order of arrival.

    At most ``most`` are under way, the one being answered included, and each waits at most
    ``wait_seconds`` for its turn; others are refused.
    """

    def __init__(
        self,
        what: Many,
        refusals: Refusals,
        *,
        most: int,
        wait_seconds: float,
        retry_seconds: int,
        at_once: int = 1,
    ) -> None:
        self._what = what
        self._refusals = refusals
        self._most = most
        self._wait_seconds = wait_seconds
        self._retry_seconds = retry_seconds
        self._turns = asyncio.Semaphore(at_once)
        self._under_way: dict[Hashable, _Pending] = {}

    async def answer(self, question: Hashable, make: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the result of ``make``, called once for simultaneous equal questions.

        It is cancelled when all its callers are. Raises what ``make`` raises, and
        HTTPServiceUnavailable if too many questions wait.
        """
        pending = self._under_way.get(question)
        if pending is None:
            if len(self._under_way) >= self._most:
                raise self._refusals.unavailable(self._what, self._retry_seconds)
            pending = self._under_way[question] = _Pending(self._make(make))
            pending.task.add_done_callback(partial(self._done, question, pending))
        pending.callers += 1
        try:
            found: Answer = await asyncio.shield(pending.task)
            return found
        except _NoTurnError:
            raise self._refusals.unavailable(self._what, self._retry_seconds) from None
        finally:
            pending.callers -= 1
            if not pending.callers and not pending.task.done():
                self._forget(question, pending)
                pending.task.cancel()

    async def _make(self, make: Callable[[], Awaitable[Answer]]) -> Answer:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._turns.acquire()
        except TimeoutError:
            raise _NoTurnError from None
        try:
            return await make()
        finally:
            self._turns.release()

    def _done(self, question: Hashable, pending: _Pending, task: asyncio.Task[object]) -> None:
        self._forget(question, pending)
        if not task.cancelled():
            task.exception()  # marks it as retrieved: its callers have it

    def _forget(self, question: Hashable, pending: _Pending) -> None:
        if self._under_way.get(question) is pending:
            del self._under_way[question]


class Slots:
    """Limits the answers under way; others are refused.

    One address may have three quarters of them, so that slow clients leave some to others.
    """

    def __init__(self, what: Many, refusals: Refusals, most: int, retry_seconds: int) -> None:
        self._what = what
        self._refusals = refusals
        self._most = most
        self._taken: Counter[str | None] = Counter()
        self._retry_seconds = retry_seconds

    @contextmanager
    def taken(self, request: web.Request) -> Iterator[None]:
        """Hold a slot within the context. Raises HTTPServiceUnavailable if there is none."""
        address = request.remote
        of_address = self._most - self._most // 4
        if self._taken.total() >= self._most or self._taken[address] >= of_address:
            raise self._refusals.unavailable(self._what, self._retry_seconds)
        self._taken[address] += 1
        try:
            yield
        finally:
            self._taken[address] -= 1
            if not self._taken[address]:
                del self._taken[address]


async def in_thread(work: Callable[[Callable[[], None]], Answer]) -> Answer:
    """Return the result of ``work``, run in a thread.

    ``work`` gets a function that it calls between its steps. After a cancellation the next such
    call ends the thread, and only then this function returns, so that threads don't pile up.
    """
    cancelled = threading.Event()

    def between_steps() -> None:
        if cancelled.is_set():
            raise _CancelledError

    running = asyncio.ensure_future(asyncio.to_thread(work, between_steps))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancelled.set()
        await asyncio.gather(running, return_exceptions=True)
        raise


class _Pending:
    """A question under way, and the number of its callers."""

    def __init__(self, task: Coroutine[object, None, Any]) -> None:
        self.task = asyncio.create_task(task)
        self.callers = 0


class _NoTurnError(Exception):
    """A question waited for too long."""


class _CancelledError(Exception):
    """The caller of a thread's work was cancelled."""
