"""``/metrics`` is sent in turns with everything else, and compressed for those that ask."""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
import sys
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import aiohttp
import pytest

from caughtup.agents.process import turns as streaming
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import (
    FreezeOnGrowth,
    collect_seldom,
    done_in_turns,
    gzipped,
    in_turns,
    return_free_memory,
)
from caughtup.agents.settings import Settings
from caughtup.agents.web.metrics import exposition as metrics
from caughtup.agents.web.server import WebServer
from tests.support.states import NOW_MS, everything

TEXT = [b"line %d\n" % number for number in range(1_000)]


async def joined(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


@asynccontextmanager
async def somebody_else() -> AsyncIterator[Iterator[int]]:
    """Somebody who wants every turn of the loop; what is next in the count is how many there were."""
    turns = count()

    async def take_turns() -> None:
        while True:
            next(turns)
            await asyncio.sleep(0)

    task = asyncio.create_task(take_turns())
    try:
        yield turns
    finally:
        task.cancel()


async def test_nothing_is_lost_or_moved_however_the_pieces_are_joined() -> None:
    assert await joined(in_turns(iter(TEXT))) == b"".join(TEXT)
    assert await joined(in_turns(iter([]))) == b""
    assert gzip.decompress(await joined(gzipped(in_turns(iter(TEXT))))) == b"".join(TEXT)
    assert gzip.decompress(await joined(gzipped(in_turns(iter([]))))) == b""


async def test_others_have_their_turn_after_each_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_CHUNK_BYTES", 1)
    async with somebody_else() as turns:
        await joined(in_turns(iter(TEXT)))
    assert next(turns) >= len(TEXT)


async def test_a_chunk_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)

    def slow() -> Iterator[bytes]:
        nonlocal clock
        for _ in range(4):
            clock += 0.75 * streaming._TURN_SECONDS
            yield b"x"

    assert [chunk async for chunk in in_turns(slow())] == [b"xx", b"xx", b""]


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip", "gzip"), ("gzip;q=0.8, br", "gzip"), ("identity", None), ("x-gzipped", None)],
)
async def test_a_scrape_is_compressed_where_that_is_asked_for(
    accepted: str, encoding: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "now_ms", lambda: NOW_MS)
    state, health = everything(), Health(ready=True, reader_lag=0)
    server = WebServer(Settings(web_port=0), state, health, clock=lambda: NOW_MS)
    await server.start()
    try:
        async with (
            aiohttp.ClientSession(auto_decompress=False) as client,
            client.get(
                f"http://127.0.0.1:{server.port}/metrics", headers={"Accept-Encoding": accepted}
            ) as response,
        ):
            body = await response.read()
    finally:
        await server.stop()
    assert response.headers.get("Content-Encoding") == encoding
    assert response.headers["Vary"] == "Accept, Accept-Encoding"
    plain = gzip.decompress(body) if encoding else body
    expected = b"".join(metrics.exposition(state, health))
    assert plain.startswith(expected)
    assert plain[len(expected) :].startswith(b"# HELP process_")  # they differ from time to time


async def test_what_is_made_in_steps_lets_others_have_their_turn() -> None:
    def steps() -> Generator[None, None, str]:
        for _ in range(20):
            began = time.monotonic()
            while time.monotonic() - began < 0.001:
                pass
            yield
        return "made"

    async with somebody_else() as turns:
        assert await done_in_turns(steps()) == "made"
    assert next(turns) > 3


async def test_however_many_make_something_one_of_them_has_its_turn_before_others_have_theirs() -> (
    None
):
    made: list[int] = []

    def steps(number: int) -> Generator[None, None, None]:
        until = time.monotonic() + 10 * streaming._TURN_SECONDS
        while time.monotonic() < until:
            made.append(number)
            yield

    def pieces(number: int) -> Iterator[bytes]:
        for _ in steps(number):
            yield b"x"

    async with somebody_else() as turns:
        makers = [
            asyncio.create_task(
                done_in_turns(steps(number)) if number % 2 else joined(in_turns(pieces(number)))
            )
            for number in range(10)
        ]
        before = next(turns)
        seen: list[set[int]] = []
        while not all(maker.done() for maker in makers):
            made.clear()
            await asyncio.sleep(0)
            seen.append(set(made))
        assert next(turns) - before >= len(seen)
    assert max(map(len, seen)) == 1
    assert set().union(*seen) == set(range(10))


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    gc.unfreeze()  # another test may have caught up with a log in this process
    yield
    gc.unfreeze()


def test_growth_is_frozen_and_nothing_else() -> None:
    freeze = FreezeOnGrowth()
    freeze.reached(999)
    assert gc.get_freeze_count() == 0
    freeze.reached(1_000)
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    for reached in (1_999, 500, 1_000, 1_999):
        freeze.reached(reached)
        assert gc.get_freeze_count() == 0
    freeze.reached(2_500)
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    freeze.reached(3_499)
    assert gc.get_freeze_count() == 0


def test_cycles_are_looked_for_seldom_and_still_found() -> None:
    before = gc.get_threshold()
    try:
        collect_seldom()
        collected = gc.get_stats()[0]["collections"]
        kept: list[list[object]] = [[] for _ in range(5_000)]
        assert gc.get_stats()[0]["collections"] == collected
        for _ in range(20_000):
            cycle: list[object] = []
            cycle.append(cycle)
        assert gc.get_stats()[0]["collections"] > collected
        assert len(kept) == 5_000
    finally:
        gc.set_threshold(*before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_between_what_is_kept_is_returned() -> None:
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    # Below the size that the C library gets from the system one by one, of 100 MB one in 200 kept.
    made = [b"x" * 100_000 for _ in range(1_000)]
    kept = made[::200]
    before = resident_bytes()
    del made
    return_free_memory()
    assert resident_bytes() < before - 50_000_000
    assert len(kept) == 5
