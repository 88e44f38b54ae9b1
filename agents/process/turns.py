"""Keep the event loop responsive: work in short turns, rare, short garbage collections; memory."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import TypeVar
from weakref import WeakKeyDictionary

import cramjam

Result = TypeVar("Result")

#: The length of a turn, the interval at which threads switch, and the size of a chunk.
_TURN_SECONDS = 0.002
_SWITCH_SECONDS = 0.0001
_CHUNK_BYTES = 1 << 17
#: The quickest level leaves a fourteenth of text whose lines are similar; the others a sixteenth,
#: with up to three times the work.
_GZIP_LEVEL = 1
#: By event loop; only tests have more than one.
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def switch_often() -> None:
    """Set Python to switch threads after 0.1 ms instead of 5 ms.

    While another thread computes, the event loop waits for a switch after each system call, and an
    answer takes several of these.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)


async def in_turns(pieces: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Join pieces to chunks of about 128 KiB or 2 ms of work, and let others run after each."""
    more = True
    while more:
        chunk: list[bytes] = []
        async with _turn():
            more = _fill(chunk, pieces)
            if more:
                await asyncio.sleep(0)  # writing a chunk need not yield to the loop
        yield b"".join(chunk)


def _fill(chunk: list[bytes], pieces: Iterator[bytes]) -> bool:
    """Add pieces to a chunk until it is full; return whether more pieces may follow."""
    size, enough = 0, time.monotonic() + _TURN_SECONDS
    for piece in pieces:
        chunk.append(piece)
        size += len(piece)
        if size >= _CHUNK_BYTES or time.monotonic() >= enough:
            return True
    return False


async def done_in_turns(steps: Generator[None, None, Result], pause_seconds: float = 0) -> Result:
    """Run a generator to its end in turns of 2 ms, and return its result.

    ``pause_seconds``: the least pause between two turns, for work that can wait.
    """
    while True:
        async with _turn():
            enough = time.monotonic() + _TURN_SECONDS
            while time.monotonic() <= enough:
                try:
                    next(steps)
                except StopIteration as done:
                    result: Result = done.value
                    return result
            await asyncio.sleep(0)
        if pause_seconds:
            await asyncio.sleep(pause_seconds)


def _turn() -> asyncio.Lock:
    """Return the lock to hold during a turn.

    With it, others wait for one turn, however many generators run at the same time.
    """
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def done_at_once(steps: Generator[None, None, Result]) -> Result:
    """Run a generator to its end without pauses, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: Result = done.value
            return result


async def gzipped(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Compress chunks, each when it is made: 128 KiB take 0.3 ms, handing them to a thread 0.1 ms.

    The standard library's zlib takes twice as long for the same bytes.
    """
    compressor = cramjam.gzip.Compressor(_GZIP_LEVEL)
    async for chunk in chunks:
        compressor.compress(chunk)
        yield bytes(compressor.flush())
    yield bytes(compressor.finish())


#: The number of groups, or copies of a large one, that a collection traverses in a few ms.
_A_FEW = 1_000


#: The thresholds of gc.set_threshold. With Python's own (700, 10, 10) the listing of a large
#: group's end offsets alone causes a full collection each second, of some 50 ms.
_SELDOM = (10_000, 10, 50)


def collect_seldom() -> None:
    """Set Python to search for garbage cycles seldom: the service makes few."""
    gc.set_threshold(*_SELDOM)


#: ``M_ARENA_MAX`` of glibc's malloc.h, and the number of arenas.
_ARENA_MAX, _ARENAS = -8, 2


def use_few_arenas() -> None:
    """Let threads share two arenas of memory, where the C library has such (glibc).

    By default each thread has one of its own, up to eight a core, and keeps what it frees. The
    service has some thirty, most of librdkafka, that seldom allocate at the same time.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(_ARENA_MAX, _ARENAS)


def return_free_memory() -> None:
    """Return memory that is allocated no longer to the system, where the C library can (glibc).

    What was read at once leaves gaps between what is kept. It takes a few ms, without the
    interpreter's lock.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class FreezeOnGrowth:
    """Freezes all existing objects whenever a count has grown by 1,000.

    A full garbage collection traverses all objects that may be part of a cycle. With a million
    group-partitions that blocks the event loop for 0.1 s, and finds nothing.

    Garbage that exists at that moment is frozen too and never freed; so only growth triggers it.
    """

    def __init__(self) -> None:
        self._next = _A_FEW

    def reached(self, count: int) -> None:
        """Take the present count, and freeze if it has grown enough."""
        if count >= self._next:
            self._next = count + _A_FEW
            gc.freeze()
