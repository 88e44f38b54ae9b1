"""Costly questions: equal ones are answered once, few wait, and what nobody waits for ends."""

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

Told = TypeVar("Told")


class Unanswerable(Exception):  # noqa: N818 - it is an answer
    """A question that can't be answered: with which status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Questions:
    """Answers one question after the other, in the order in which they come.

    ``most``: so many are under way at once, the one that is being answered included, and each
    waits for its turn for so many seconds. More, and those that waited for longer, are refused.
    """

    def __init__(
        self, what: Many, refusals: Refusals, *, most: int, wait_seconds: float, retry_seconds: int
    ) -> None:
        self._what = what
        self._refusals = refusals
        self._most = most
        self._wait_seconds = wait_seconds
        self._retry_seconds = retry_seconds
        self._one = asyncio.Lock()
        self._under_way: dict[Hashable, _Asked] = {}

    async def answer(self, question: Hashable, make: Callable[[], Awaitable[Told]]) -> Told:
        """Return what ``make`` makes, made once for all who ask the same meanwhile.

        Cancelled for the last of those who asked, it is cancelled as well. Raises what ``make``
        does, and HTTPServiceUnavailable when too many wait.
        """
        asked = self._under_way.get(question)
        if asked is None:
            if len(self._under_way) >= self._most:
                raise self._refusals.unavailable(self._what, self._retry_seconds)
            asked = self._under_way[question] = _Asked(self._made(make))
            asked.making.add_done_callback(partial(self._done, question, asked))
        asked.askers += 1
        try:
            told: Told = await asyncio.shield(asked.making)
            return told
        except _NoTurnError:
            raise self._refusals.unavailable(self._what, self._retry_seconds) from None
        finally:
            asked.askers -= 1
            if not asked.askers and not asked.making.done():
                self._forget(question, asked)
                asked.making.cancel()

    async def _made(self, make: Callable[[], Awaitable[Told]]) -> Told:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._one.acquire()
        except TimeoutError:
            raise _NoTurnError from None
        try:
            return await make()
        finally:
            self._one.release()

    def _done(self, question: Hashable, asked: _Asked, making: asyncio.Task[Any]) -> None:
        self._forget(question, asked)
        if not making.cancelled():
            making.exception()  # whoever waited for it has it; else it is nobody's

    def _forget(self, question: Hashable, asked: _Asked) -> None:
        if self._under_way.get(question) is asked:
            del self._under_way[question]


class Slots:
    """A number of answers that may be under way at once; more are refused.

    One address has three quarters of them at most: whoever reads slowly leaves some to others.
    """

    def __init__(self, what: Many, refusals: Refusals, most: int, retry_seconds: int) -> None:
        self._what = what
        self._refusals = refusals
        self._most = most
        self._taken: Counter[str | None] = Counter()
        self._retry_seconds = retry_seconds

    @contextmanager
    def taken(self, request: web.Request) -> Iterator[None]:
        """Hold a slot while it lasts. Raises HTTPServiceUnavailable when there is none."""
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


async def in_thread(work: Callable[[Callable[[], None]], Told]) -> Told:
    """Run something in a thread and return what it returns.

    It is given what it calls between its steps. Cancelled, the next such call ends it, and only
    then this returns: no more threads are at work than are waited for.
    """
    left = threading.Event()

    def between_steps() -> None:
        if left.is_set():
            raise _LeftError

    running = asyncio.ensure_future(asyncio.to_thread(work, between_steps))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        left.set()
        await asyncio.gather(running, return_exceptions=True)
        raise


class _Asked:
    """A question that is under way, and how many wait for it."""

    def __init__(self, making: Coroutine[Any, Any, Any]) -> None:
        self.making = asyncio.create_task(making)
        self.askers = 0


class _NoTurnError(Exception):
    """A question waited for too long."""


class _LeftError(Exception):
    """Nobody waits any more for what a thread makes."""
