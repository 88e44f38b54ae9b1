"""Lists of lines beside instances that are slow, busy or hostile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from aiohttp import web
from yarl import URL

from caughtup.agents.web.addresses import FORWARDED, MISSING
from caughtup.agents.web.door import connections
from caughtup.models.sharing import Peer
from tests.agents.web.test_peers import serving
from tests.support.groups.records import commit
from tests.support.observability.site import Connected, Site
from tests.support.states import cluster_state, read

PAGE = b'{"group":"zz","topic":"t","partition":0}\n'


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(cluster_state()) as running:
        held = running.state.held
        held.count, held.numbers = 2, frozenset({0})
        yield running


async def ask(connected: Connected, header: str) -> None:
    connected.writer.write(
        f"GET /api/lag HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}Connection: close\r\n\r\n".encode()
    )
    await connected.writer.drain()


async def test_an_instance_may_read_as_slowly_as_its_client(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_SECONDS", 0.2)
    read(site.state, *(commit(number, 5, group="x" * 200) for number in range(30_000)))
    async with site.connected() as client, site.connected() as instance:
        await ask(client, "")
        await ask(instance, f"{FORWARDED}: 1\r\n")
        await client.head()
        await instance.head()
        await asyncio.sleep(1.5)
        assert (await instance.read()).endswith(b"0\r\n\r\n")
        assert not (await client.ended()).endswith(b"0\r\n\r\n")


async def test_clients_lists_leave_room_for_those_of_other_instances(site: Site) -> None:
    gone = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        await gone.wait()
        return web.Response()

    async with serving(silent) as address, AsyncExitStack() as stack:
        site.state.held.others = {1: Peer("host:1", address)}
        for number in range(8):
            source = f"127.0.0.{2 + number % 2}"
            await ask(await stack.enter_async_context(site.connected(source)), "")
        await asyncio.sleep(0.2)
        assert await site.status("/api/lag") == 503
        assert await site.status("/api/lag", headers={FORWARDED: "1"}) == 200
        gone.set()


@pytest.mark.parametrize(
    "body",
    [
        b"not JSON\n" + PAGE,
        b'{"group":' + b"[" * 100_000 + b"\n" + PAGE,
        b"\n" * 1_000_000,
        b'{"group":"a"}\n' * 20_000,
        b'{"group":"zz"}',
        b"",
    ],
    ids=["words", "deep", "empty", "before", "half", "nothing"],
)
async def test_pages_end_whatever_an_instance_answers(site: Site, body: bytes) -> None:
    read(site.state, commit(0, 5, group="mine"), commit(1, 5, group="mine"))

    async def answer(_: web.Request) -> web.Response:
        kind = "application/x-ndjson"
        return web.Response(body=body, content_type=kind, headers={"Link": '</x>; rel="next"'})

    async with serving(answer) as address:
        site.state.held.others = {1: Peer("host:1", address)}
        url, found = URL(site.url("/api/lag?limit=5&cursor=0:b")), list[bytes]()
        for _ in range(30):
            async with site.client.get(url) as page:
                assert (page.status, MISSING in page.headers) == (200, False)
                found += (await page.read()).splitlines()
                if "next" not in page.links:
                    break
                url = page.links["next"]["url"]
        assert sum(b'"mine"' in line for line in found) == 2
        assert not any(b'"a"' in line for line in found)


async def test_an_answer_that_trickles_costs_its_part_and_leaves_no_task(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caughtup.agents.web.peers._WHOLE_SECONDS", 0.3)

    async def trickle(request: web.Request) -> web.StreamResponse:
        await (response := web.StreamResponse()).prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.05)

    async with serving(trickle) as address:
        site.state.held.others = {1: Peer("host:1", address)}
        before = len(asyncio.all_tasks())
        async with site.get("/api/lag?limit=5") as page:
            assert (page.status, page.headers[MISSING]) == (200, "host:1")
        await site.client.close()
        await asyncio.sleep(0.2)
        assert len(asyncio.all_tasks()) <= before
