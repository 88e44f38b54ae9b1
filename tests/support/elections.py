"""Instances in one group: wait for what they do, and let one fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from caughtup.agents.election.agent import Election


async def until(what: str, ask: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something is so. Raises TimeoutError."""
    del what  # for the reader
    async with asyncio.timeout(seconds):
        while not ask():  # noqa: ASYNC110 - nothing tells when it is so
            await asyncio.sleep(0.02)


@contextmanager
def silent(election: Election) -> Iterator[None]:
    """An instance sends no heartbeat within the context."""
    over = asyncio.Event()

    async def beat() -> None:
        await over.wait()

    election._member.beat = beat  # type: ignore[method-assign]
    try:
        yield
    finally:
        del election._member.beat
        over.set()
