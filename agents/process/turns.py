"""Sends what is made in small pieces: in turns with everything else, and compressed where asked."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Generator, Iterator
from typing import TypeVar

Made = TypeVar("Made")

#: How long pieces are made before others get their turn, and how much is sent in one go.
_TURN_SECONDS = 0.002
_CHUNK_BYTES = 1 << 17
#: Of text that is nearly the same line after line, the quickest level leaves a fourteenth, and
#: the others, at up to three times the work, a sixteenth.
_GZIP_LEVEL = 1
_GZIP_FORMAT = 16 + zlib.MAX_WBITS


async def in_turns(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Join pieces to chunks, and let others have their turn after each."""
    chunk: list[bytes] = []
    size, enough = 0, time.monotonic() + _TURN_SECONDS
    for piece in pieces:
        chunk.append(piece)
        size += len(piece)
        if size < _CHUNK_BYTES and time.monotonic() < enough:
            continue
        yield b"".join(chunk)
        await asyncio.sleep(0)  # a write that the system takes at once doesn't wait
        chunk.clear()
        size, enough = 0, time.monotonic() + _TURN_SECONDS
    yield b"".join(chunk)


async def done_in_turns(steps: Generator[None, None, Made], pause_seconds: float = 0) -> Made:
    """Go through the steps of making something, and let others have their turn in between.

    ``pause_seconds``: how long they have it at least, where what is made can wait.
    """
    enough = time.monotonic() + _TURN_SECONDS
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: Made = done.value
            return made
        if time.monotonic() > enough:
            await asyncio.sleep(pause_seconds)
            enough = time.monotonic() + _TURN_SECONDS


def done_at_once(steps: Generator[None, None, Made]) -> Made:
    """Go through the steps of making something where nobody else waits for a turn."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: Made = done.value
            return made


async def gzipped(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
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
