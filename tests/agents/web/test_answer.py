"""A scrape is whole, or nobody takes it for whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from caughtup.agents.web import answer as web_answer
from caughtup.agents.web import scrapes, served_metrics
from tests.support.observability.site import Site

LINE = b"x 1\n"
MEGABYTE = LINE * (1 << 18)


def failing_after(megabytes: int) -> Iterator[bytes]:
    for _ in range(megabytes):
        yield MEGABYTE
    raise RuntimeError("this one has no cost")


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_a_scrape_that_fails_is_a_500_and_is_counted(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_metrics, "exposition", lambda *_, **__: failing_after(2))
    async with Site() as site:
        async with site.get("/metrics", headers={"Accept-Encoding": encoding}) as answer:
            assert answer.status == 500
            assert "log" in await answer.text()
        assert site.state.faults.totals == {("metrics", "RuntimeError"): 1}
        assert await site.status("/ready") == 200


@pytest.mark.parametrize("version", ["1.1", "1.0"])
async def test_a_long_scrape_that_fails_half_way_does_not_end_as_if_it_were_whole(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_metrics, "exposition", lambda *_, **__: failing_after(20))
    async with Site() as site:
        async with site.connected() as connected:
            await connected.ask("/metrics", version=version)
            assert b"200 OK" in await connected.head()
            with pytest.raises(ConnectionResetError):
                await connected.read()
        assert site.state.faults.totals == {("metrics", "RuntimeError"): 1}


async def test_a_long_scrape_that_fails_in_gzip_has_no_last_chunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served_metrics, "exposition", lambda *_, **__: failing_after(20))
    monkeypatch.setattr(web_answer, "_HELD_BYTES", 1)
    async with Site() as site, site.connected() as connected:
        connected.writer.write(
            b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n"
        )
        received = await connected.ended()
    assert b"200 OK" in received
    assert b"\r\n0\r\n" not in received


async def test_a_long_scrape_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_metrics, "exposition", lambda *_, **__: iter([MEGABYTE] * 20))
    async with Site() as site, site.get("/metrics") as answer:
        assert await answer.read() == MEGABYTE * 20


async def test_a_short_scrape_says_how_long_it_is() -> None:
    async with (
        Site() as site,
        site.get("/metrics", headers={"Accept-Encoding": "identity"}) as answer,
    ):
        assert int(answer.headers["Content-Length"]) == len(await answer.read()) > 0


async def test_a_scrape_that_takes_its_reader_too_long_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served_metrics, "exposition", lambda *_, **__: iter([MEGABYTE] * 500))
    monkeypatch.setattr(web_answer, "_SECONDS", 0.2)
    async with Site() as site, site.connected() as connected:
        await connected.ask("/metrics")
        assert b"200 OK" in await connected.head()
        await asyncio.sleep(0.3)  # reads nothing meanwhile
        with pytest.raises(ConnectionResetError):
            await connected.read()
        assert site.state.faults.totals == {}


async def test_only_so_many_are_scraping_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrapes, "_SCRAPES", 1)
    monkeypatch.setattr(served_metrics, "exposition", lambda *_, **__: iter([MEGABYTE] * 500))
    async with Site() as site, site.connected() as slow:
        await slow.ask("/metrics")
        await slow.head()
        async with site.get("/metrics") as answer:
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) > 0
