"""Abusive clients of a web port, in a separate process that doesn't slow the measurement."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from multiprocessing.connection import Connection

from caughtup.bench.door.crowd import Crowd

_FOR_EVER_SECONDS = 3_600.0


@asynccontextmanager
async def _meanwhile(doing: Coroutine[object, object, object]) -> AsyncIterator[None]:
    task = asyncio.create_task(doing)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


#: The abuses by name: functions of a crowd and a list of distinct costly questions.
ABUSES: dict[str, Callable[[Crowd, Sequence[str]], AbstractAsyncContextManager[None]]] = {
    "600 half-open connections": lambda crowd, _: crowd.half_open(600),
    "1,000 requests for safe, abandoned": lambda crowd, asked: _meanwhile(
        crowd.leave(asked[:1_000])
    ),
    "300 requests for /api/state, abandoned": lambda crowd, _: _meanwhile(
        crowd.leave(["/api/state"] * 300)
    ),
    "500 pages that never read": lambda crowd, _: crowd.never_reading(500, "/api/events"),
    "bytes that are not HTTP": lambda crowd, _: _meanwhile(
        crowd.talk(b"GET / HTTP/9.x\r\n\r\n", _FOR_EVER_SECONDS)
    ),
}


@asynccontextmanager
async def abused(
    port: int, source: str, questions: Sequence[str], abuses: Sequence[str]
) -> AsyncIterator[None]:
    """Abuse a local port from an address in these ways, inside the context."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_abuse, args=(port, source, questions, abuses, theirs))
    process.start()
    theirs.close()
    try:
        await asyncio.to_thread(ours.recv)
        yield
    finally:
        ours.close()
        await asyncio.to_thread(process.join)


def _abuse(
    port: int, source: str, questions: Sequence[str], abuses: Sequence[str], parent: Connection
) -> None:
    asyncio.run(_abused(Crowd(port, source), questions, abuses, parent))


async def _abused(
    crowd: Crowd, questions: Sequence[str], abuses: Sequence[str], parent: Connection
) -> None:
    async with AsyncExitStack() as going_on:
        for name in abuses:
            await going_on.enter_async_context(ABUSES[name](crowd, questions))
        parent.send("the abuse has begun")
        await asyncio.to_thread(parent.poll, None)  # until it is done
