"""Sends what is made in small pieces: in turns with everything else, and compressed where asked."""

from __future__ import annotations

import asyncio
import sys
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import TypeVar
from weakref import WeakKeyDictionary

Made = TypeVar("Made")

#: How long pieces are made before others get their turn, and how much is sent in one go.
_TURN_SECONDS = 0.002
_SWITCH_SECONDS = 0.0001
_CHUNK_BYTES = 1 << 17
#: Of text that is nearly the same line after line, the quickest level leaves a fourteenth, and
#: the others, at up to three times the work, a sixteenth.
_GZIP_LEVEL = 1
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
#: By event loop: there is one but for tests.
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def switch_often() -> None:
    """Set Python to let threads take turns after a tenth of a millisecond instead of five.

    While a thread computes, the loop waits for its next turn after each call to the system, and
    it takes several for an answer.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)


async def in_turns(pieces: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Join pieces to chunks, and let others have their turn after each."""
    more = True
    while more:
        chunk: list[bytes] = []
        async with _turn():
            more = _fill(chunk, pieces)
            if more:
                await asyncio.sleep(0)  # a write that the system takes at once doesn't wait
        yield b"".join(chunk)


def _fill(chunk: list[bytes], pieces: Iterator[bytes]) -> bool:
    """Put pieces into a chunk until it is enough; return whether there may be more of them."""
    size, enough = 0, time.monotonic() + _TURN_SECONDS
    for piece in pieces:
        chunk.append(piece)
        size += len(piece)
        if size >= _CHUNK_BYTES or time.monotonic() >= enough:
            return True
    return False


async def done_in_turns(steps: Generator[None, None, Made], pause_seconds: float = 0) -> Made:
    """Go through the steps of making something, and let others have their turn in between.

    ``pause_seconds``: how long they have it at least, where what is made can wait.
    """
    while True:
        async with _turn():
            enough = time.monotonic() + _TURN_SECONDS
            while time.monotonic() <= enough:
                try:
                    next(steps)
                except StopIteration as done:
                    made: Made = done.value
                    return made
            await asyncio.sleep(0)
        if pause_seconds:
            await asyncio.sleep(pause_seconds)


def _turn() -> asyncio.Lock:
    """Return what one holds from its turn to the loop's next: however many make something at the
    same time, everybody else waits for one of their turns, not for all of them.
    """
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def done_at_once(steps: Generator[None, None, Made]) -> Made:
    """Go through the steps of making something where nobody else waits for a turn."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: Made = done.value
            return made


async def gzipped(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Compress chunks in a thread, each while the next is made."""
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_FORMAT)
    loop = asyncio.get_running_loop()
    compressing: asyncio.Future[bytes] | None = None
    async for chunk in chunks:
        if compressing is not None:
            yield await compressing
        compressing = loop.run_in_executor(None, compressor.compress, chunk)
    if compressing is not None:
        yield await compressing
    yield await loop.run_in_executor(None, compressor.flush)
