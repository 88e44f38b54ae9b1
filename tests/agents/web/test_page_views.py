"""The page's addresses and views over HTTP: deep links, pushed and answered, refused where wrong."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.web import page_views
from tests.agents.web.test_server import event
from tests.support.groups.records import GROUP
from tests.support.observability.site import Site
from tests.support.states import HOSTILE, everything


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(everything(), Health(ready=True)) as running:
        yield running


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/", None),
        ("/reassignments", None),
        ("/health", None),
        ("/groups/orders", b"../"),
        ("/groups/a%2Fb", b"../"),
        (f"/groups/{quote(HOSTILE, safe='')}", b"../"),
    ],
)
async def test_the_page_is_at_each_of_its_addresses(
    site: Site, path: str, base: bytes | None
) -> None:
    async with site.get(path) as response:
        body = await response.read()
    assert response.status == 200
    assert b'src="page.js"' in body
    assert (b'<base href="%s">' % base in body) if base else b"<base" not in body


@pytest.mark.parametrize("view", ["overview", "reassignments", "connect", "streams", "health"])
async def test_a_view_is_pushed_as_it_is_answered(site: Site, view: str) -> None:
    async with site.get(f"/api/view?view={view}") as response:
        answered = await response.json()
    assert (answered["schema"], answered["view"], answered["ready"]) == (2, view, True)
    async with site.get(f"/api/events?view={view}") as stream:
        pushed = await event(stream)
    assert pushed.keys() == answered.keys()


async def test_a_view_names_the_addresses_that_the_settings_have(site: Site) -> None:
    async with site.get("/api/view?view=overview") as response:
        assert (await response.json())["links"] == {}
    addresses = {
        "grafana_url": "https://grafana.example.com/d/caughtup?orgId=1",
        "docs_url": "https://docs.example.com/caughtup/",
    }
    async with Site(**addresses) as set_up, set_up.get(f"/api/view?group={GROUP}") as response:
        assert (await response.json())["links"] == {
            "grafana": "https://grafana.example.com/d/caughtup?orgId=1",
            "docs": "https://docs.example.com/caughtup",
            "runbooks": "https://docs.example.com/caughtup/operating/",
        }


@pytest.mark.parametrize("group", [GROUP, HOSTILE, "nobody"])
async def test_a_group_has_a_view_and_its_last_hours(site: Site, group: str) -> None:
    async with site.get(f"/api/view?group={quote(group, safe='')}") as response:
        view = await response.json()
    assert ("group" in view) == (group != "nobody")
    assert view["name"] == group
    async with site.get(f"/api/groups/{quote(group, safe='')}/recent") as response:
        assert (await response.json())["group"] == group
    async with site.get("/api/recent") as response:
        assert json.loads(await response.read())["series"] == {}


@pytest.mark.parametrize(
    "query", ["view=everything", "view=group", "group=a&view=overview", f"group={'x' * 1001}", "x"]
)
async def test_a_view_that_there_is_not_is_refused(site: Site, query: str) -> None:
    for path in ("/api/view", "/api/events"):
        async with site.get(f"{path}?{query}") as response:
            assert response.status == 400


def resident_bytes() -> int:
    """Return the memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def test_who_asks_for_the_state_at_the_same_time_shares_one_and_holds_no_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    large = "x" * (32 << 20)

    def steps(*_: object) -> Generator[None, None, dict[str, str]]:
        made.append(1)
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            yield
        return {"large": large}

    monkeypatch.setattr(page_views, "whole_steps", steps)
    async with Site() as site, AsyncExitStack() as clients:
        readers = [
            await clients.enter_async_context(site.connected(f"127.0.0.{2 + number % 2}"))
            for number in range(8)
        ]
        before = resident_bytes()
        for reader in readers:
            await reader.ask("/api/state")
        for reader in readers:
            assert b"200 OK" in await reader.head()
        # One that was made, one that it was made from, and what is on its way to eight readers.
        assert resident_bytes() - before < 4 * len(large)
        assert len(made) == 1
        assert await site.status("/api/state") == 503  # it would be one more to hold
        assert await site.status("/api/view?view=overview") == 200
        for reader in readers[1:]:
            reader.writer.transport.abort()
        body = await readers[0].reader.readexactly(len(large))
        assert body.startswith(b'{"large":"xxx')


async def test_a_state_whose_readers_have_gone_is_not_made_any_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ended = list[int](), list[int]()

    def steps(*_: object) -> Generator[None, None, dict[str, str]]:
        begun.append(1)
        try:
            while True:
                yield
        finally:
            ended.append(1)

    monkeypatch.setattr(page_views, "whole_steps", steps)
    async with Site() as site:
        async with AsyncExitStack() as clients:
            for _ in range(8):
                await (await clients.enter_async_context(site.connected())).ask("/api/state")
            await until(lambda: begun)
            assert not ended
        await until(lambda: ended)
        assert begun == [1]


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - nothing tells when it is so
            await asyncio.sleep(0.01)
