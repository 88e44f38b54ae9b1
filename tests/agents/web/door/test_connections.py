"""Limits on who is connected: how many, how slow, how long. Times are shortened, not waited for."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import aiohttp
import pytest

from caughtup.agents.web import page_views, served_metrics, server
from caughtup.agents.web.door import connections
from tests.support.observability.site import Connected, Site

SOON = 0.3


async def until_refused(connected: Connected) -> float:
    """Send a header byte by byte, and give the seconds until that is ended."""
    began = time.monotonic()
    try:
        connected.writer.write(b"GET /ready HTTP/1.1\r\nX: ")
        while time.monotonic() < began + 20:
            connected.writer.write(b"x")
            await connected.writer.drain()
            await asyncio.sleep(0.02)
    except ConnectionError:
        pass
    return time.monotonic() - began


async def test_a_header_that_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", SOON)
    async with Site() as site, site.connected() as connected:
        assert await until_refused(connected) < 10


async def test_a_second_request_that_never_ends_is_cut_off_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Site() as site, site.connected() as connected:
        await connected.ask("/ready")
        assert b"200 OK" in await connected.head()
        assert await connected.reader.readexactly(6) == b"ready\n"
        monkeypatch.setattr(connections, "HEADER_SECONDS", SOON)
        assert await until_refused(connected) < 10


async def test_who_says_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", SOON)
    async with Site() as site, site.connected() as connected:
        assert await connected.ended() == b""


async def test_a_connection_that_idles_between_requests_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", SOON)
    async with Site() as site, site.connected() as connected:
        await connected.ask("/ready")
        assert (await connected.ended()).endswith(b"ready\n")


async def test_a_connection_is_used_again_although_its_time_for_a_header_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", SOON)
    async with Site() as site, site.connected() as connected:
        for _ in range(3):
            await connected.ask("/ready")
            assert b"200 OK" in await connected.head()
            await connected.reader.readexactly(6)
            await asyncio.sleep(1.5 * SOON)


async def test_a_request_that_is_too_large_is_cut_off() -> None:
    async with Site() as site:
        async with site.connected() as connected:
            fields = b"".join(b"X-%d: %s\r\n" % (n, b"x" * 8000) for n in range(100))
            connected.writer.write(b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\n" + fields)
            assert await connected.ended() == b""
        async with site.connected() as connected:
            connected.writer.write(b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\n\r\n")
            assert b"400 Bad Request" in await connected.ended()


async def test_requests_sent_ahead_of_an_answer_that_never_ends_are_bounded() -> None:
    async with Site() as site, site.connected() as connected:
        await connected.ask("/api/events")
        await connected.head()
        field = b"X: " + b"x" * 8000
        connected.writer.write(b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n\r\n" % field * 20)
        assert b"HTTP/1.1" not in await connected.ended()


async def test_of_too_many_requests_the_last_are_told_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "ANSWERED", 3)
    async with Site() as site, AsyncExitStack() as answered:
        first = await answered.enter_async_context(site.connected())
        await first.ask("/ready")
        await first.head()
        for _ in range(3):
            stream = await answered.enter_async_context(site.connected())
            await stream.ask("/api/events")
            assert b"200 OK" in await stream.head()
        async with aiohttp.ClientSession() as client, client.get(site.url("/metrics")) as answer:
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) > 0
            assert answer.headers["Connection"] == "close"
        # Probes are answered, however many there are.
        assert await site.status("/ready") == 200
        assert await site.status("/healthz") == 200
        assert site.health.web_refusals == {"connections": 1}


async def test_one_address_has_only_so_many_answers_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "ANSWERED_OF_ADDRESS", 1)
    async with Site() as site, site.connected() as stream, site.connected("127.0.0.2") as other:
        await stream.ask("/api/events")
        assert b"200 OK" in await stream.head()
        assert await site.status("/metrics") == 503
        await other.ask("/metrics")
        assert b"200 OK" in await other.head()


async def test_of_those_that_ask_nothing_the_oldest_makes_room_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "SILENT", 3)
    async with Site() as site, AsyncExitStack() as connected:
        stream = await connected.enter_async_context(site.connected())
        await stream.ask("/api/events")
        assert b"200 OK" in await stream.head()  # it has asked: it isn't one of them
        silent = [await connected.enter_async_context(site.connected()) for _ in range(3)]
        silent[0].writer.write(b"GET /rea")
        silent.append(await connected.enter_async_context(site.connected()))
        assert await silent[0].ended() == b""
        for one in silent[1:]:
            await one.ask("/ready")
            assert b"200 OK" in await one.head()
        assert site.health.web_refusals == {"connections": 1}


async def test_one_address_loses_its_own_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SILENT_OF_ADDRESS", 2)
    async with Site() as site, AsyncExitStack() as connected:
        ours = await connected.enter_async_context(site.connected())
        theirs = [
            await connected.enter_async_context(site.connected("127.0.0.2")) for _ in range(3)
        ]
        assert await theirs[0].ended() == b""
        for one in (ours, *theirs[1:]):
            await one.ask("/ready")
            assert b"200 OK" in await one.head()


async def test_a_late_request_outlives_newer_connections_that_sent_a_part_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "SILENT_OF_ADDRESS", 3)
    async with Site() as site, AsyncExitStack() as connected:
        late = await connected.enter_async_context(site.connected())
        partial = []
        for _ in range(10):
            partial.append(await connected.enter_async_context(site.connected()))
            partial[-1].writer.write(b"GET /ready HTTP/1.1\r\nX: ")
            await asyncio.sleep(0.05)  # it comes before the next connection
        await late.ask("/ready")
        assert b"200 OK" in await late.head()
        for one in partial[:7]:
            assert await one.ended() == b""
        assert site.health.web_refusals["connections"] == 8


async def test_a_connection_that_ended_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWERED", 1)
    async with Site() as site:
        for _ in range(20):
            deadline = time.monotonic() + 10
            while await site.status("/metrics") == 503:  # the one before is still being closed
                assert time.monotonic() < deadline


async def test_event_streams_are_counted_and_those_that_end_make_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_STREAMS", 2)
    monkeypatch.setattr(server, "_PUSH_SECONDS", 0.01)
    async with Site() as site:
        streams = [await site.get("/api/events") for _ in range(2)]
        async with site.get("/api/events") as answer:
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) > 0
        assert await site.status("/api/state") == 200
        streams[0].close()
        deadline = time.monotonic() + 20
        while True:
            assert time.monotonic() < deadline
            async with site.get("/api/events") as answer:
                if answer.status == 200:
                    break
        streams[1].close()


async def test_one_address_leaves_some_streams_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_STREAMS", 4)
    async with Site() as site, site.connected("127.0.0.2") as other:
        streams = [await site.get("/api/events") for _ in range(4)]
        assert [stream.status for stream in streams] == [200, 200, 200, 503]
        await other.ask("/api/events")
        assert b"200 OK" in await other.head()
        for stream in streams:
            stream.close()


async def test_nobody_takes_a_stream_without_reading_it() -> None:
    async with Site() as site, site.client.head(site.url("/api/events")) as answer:
        assert answer.status == 405


async def test_who_listens_at_the_same_time_gets_a_state_that_was_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = 0
    steps = page_views.whole_steps

    def counted(*arguments: object) -> object:
        nonlocal made
        made += 1
        return steps(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(page_views, "whole_steps", counted)
    monkeypatch.setattr(page_views, "_SHARED_SECONDS", 60.0)
    async with Site() as site:
        streams = [await site.get("/api/events") for _ in range(10)]
        for stream in streams:
            assert await stream.content.readline() == b"event: state\n"
            stream.close()
    assert made == 1


@pytest.mark.parametrize("path", ["/metrics", "/api/events"])
async def test_a_reader_that_does_not_read_is_cut_off(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_SECONDS", SOON)
    monkeypatch.setattr(server, "_PUSH_SECONDS", 0.0)
    monkeypatch.setattr(
        served_metrics, "exposition", lambda *_, **__: (b"x" * (1 << 20) for _ in range(256))
    )
    ended: list[str] = []
    lost = connections.WebConnection.connection_lost

    def noted(self: connections.WebConnection, exc: Exception | None) -> None:
        ended.append(path)
        lost(self, exc)

    monkeypatch.setattr(connections.WebConnection, "connection_lost", noted)
    async with Site() as site, site.connected() as connected:
        await connected.ask(path)
        # asyncio's reader stops reading from the socket once it holds 128 KB.
        deadline = time.monotonic() + 20
        while not ended:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
