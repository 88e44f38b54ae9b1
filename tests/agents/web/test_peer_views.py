"""A view has the groups of all instances; one that doesn't answer is named, with the age of its part."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_at_once
from caughtup.agents.web import peer_views
from caughtup.agents.web.addresses import FORWARDED
from caughtup.models.sharing import Peer
from caughtup.models.state.forgetting import drop_groups
from tests.support.groups.records import GROUP
from tests.support.observability.site import Site
from tests.support.states import NOW_MS, everything

ALL = everything().group_names()
PATHS = ["/api/view?view=overview", "/api/state", "/api/view?view=connect", "/api/view?view=health"]


class Sites(NamedTuple):
    """Two instances that know each other: ``streams`` has one group, ``plain`` the others."""

    streams: Site
    plain: Site

    def know_each_other(self) -> None:
        for site, other in ((self.streams, self.plain), (self.plain, self.streams)):
            site.state.held.count, site.state.held.numbers = 2, frozenset({0})
            site.state.held.others = {1: Peer(f"host:{other.server.port}", other.url(""))}


@pytest.fixture
async def sites() -> AsyncIterator[Sites]:
    states = everything(), everything()
    done_at_once(drop_groups(states[0], lambda group: group != GROUP))
    done_at_once(drop_groups(states[1], lambda group: group == GROUP))
    async with (
        Site(states[0], Health(ready=True)) as one,
        Site(states[1], Health(ready=True)) as two,
    ):
        pair = Sites(one, two)
        pair.know_each_other()
        yield pair


async def asked(site: Site, path: str) -> Any:
    async with site.get(path) as answer:
        assert answer.status == 200
        return await answer.json()


@pytest.mark.parametrize("path", PATHS)
async def test_both_show_the_groups_of_both_when_they_ask_each_other_at_once(
    sites: Sites, path: str
) -> None:
    views = await asyncio.gather(*(asked(site, path) for site in sites for _ in range(5)))
    for view in views:
        if "groups" in view:
            assert sorted(row["group"] for row in view["groups"]) == ALL
        ((instance),) = view["instances"]
        assert instance.keys() == {"name", "address", "partitions", "as_of_ms"}
        assert (instance["partitions"], instance["as_of_ms"]) == (1, NOW_MS)


async def test_events_have_the_groups_of_both(sites: Sites) -> None:
    async with sites.streams.get("/api/events?view=overview") as answer:
        assert await answer.content.readline() == b"event: state\n"
        data = json.loads((await answer.content.readline()).removeprefix(b"data: "))
    assert sorted(row["group"] for row in data["groups"]) == ALL


@pytest.mark.parametrize("path", ["/api/view?view=overview", "/api/state", "/api/recent"])
async def test_one_that_is_asked_by_another_answers_for_itself(sites: Sites, path: str) -> None:
    async with sites.streams.get(path, headers={FORWARDED: "1"}) as answer:
        view = await answer.json()
    assert "instances" not in view
    assert [row["group"] for row in view.get("groups", [])] in ([GROUP], [])


async def test_the_last_hours_of_the_cluster_are_of_both(sites: Sites) -> None:
    for site, lag in ((sites.streams, 5.0), (sites.plain, 7.0)):
        site.state.recent.cluster.add(NOW_MS, {"lag": lag, "reassignments": 1.0})
    recent = await asked(sites.streams, "/api/recent")
    assert recent["series"] == {"lag": [12.0], "reassignments": [1.0]}


async def test_one_that_has_ended_is_named_and_its_part_is_kept_with_its_age(sites: Sites) -> None:
    path = "/api/view?view=overview"
    await asked(sites.streams, path)
    await sites.plain.server.stop()
    view = await asked(sites.streams, path)
    assert sorted(row["group"] for row in view["groups"]) == ALL
    (instance,) = view["instances"]
    assert "Connect" in instance["why"]
    assert instance["as_of_ms"] == NOW_MS
    other = await asked(sites.streams, f"{path}&find={GROUP}")  # of which there was no part before
    assert other["instances"][0].keys() == {"name", "address", "partitions", "why"}


async def test_a_part_is_as_old_as_its_figures_were(sites: Sites) -> None:
    sites.plain.health.polled_ms = NOW_MS - 7_000
    sites.plain.health.succeeded("end_offsets", NOW_MS - 4_000)
    view = await asked(sites.streams, "/api/view?view=overview")
    assert view["instances"][0]["as_of_ms"] == NOW_MS - 7_000


async def test_one_that_is_not_ready_is_named_since_its_figures_may_be_old(sites: Sites) -> None:
    sites.plain.health.ready = False
    view = await asked(sites.streams, "/api/view?view=overview")
    assert sorted(row["group"] for row in view["groups"]) == ALL
    assert view["instances"][0]["why"].startswith("it is not ready: catching up")


async def test_one_that_is_silent_holds_a_view_back_once(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_patience(monkeypatch, first=0.2, shortly=0.05, in_all=0.4)
    loop = asyncio.get_running_loop()
    async with beside(sites.streams, asyncio.Event().wait):
        view = await asked(sites.streams, "/api/view?view=overview")
        assert view["instances"][0]["why"] == "it has not answered yet"
        await asyncio.sleep(0.5)
        began = loop.time()
        view = await asked(sites.streams, "/api/view?view=overview")
        assert "has not answered for" in view["instances"][0]["why"]
        assert [row["group"] for row in view["groups"]] == [GROUP]
        assert loop.time() - began < 0.2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"groups": 5}',
        b'{"feed": [{"at_ms": "x"}]}',
        b"\xff" * 100,
        b'{"x":' + b"[" * 100_000,
        b'{"groups_more": 99999999999999999999}',
        b'{"statuses": {"ok": -5}}',
        b'{"series": {"lag": [NaN]}}',
        b'{"groups": [' + b",".join([b"{}"] * 1_000_001) + b"]}",
        b'{"groups_not_told": {' + b",".join(b'"%d":1' % each for each in range(101)) + b"}}",
        b'{"groups": [{"group": "x",\n\n"partitions": 1}]}',
    ],
    ids=lambda body: repr(body[:30]),
)
async def test_an_answer_that_is_none_costs_its_part(sites: Sites, body: bytes) -> None:
    async def answer() -> bytes:
        return body

    async with beside(sites.streams, answer):
        view = await asked(sites.streams, "/api/view?view=overview")
    assert [row["group"] for row in view["groups"]] == [GROUP]
    assert view["instances"][0]["why"]


@pytest.mark.parametrize(
    "row",
    [
        b"5",
        b'{"group": 5}',
        b'{"group": "x", "partitions": "many"}',
        b'{"group": "x", "partitions": 1, "y": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"group": "x", "partitions": 1, "lag": ' + b"9" * 4_000 + b"}",
        b'{"group": "%s", "partitions": 1, "status": "nonsense"}' % (b"x" * 100_000),
    ],
    ids=lambda row: repr(row[:50]),
)
@pytest.mark.parametrize("path", PATHS)
async def test_a_row_that_is_none_costs_no_other(sites: Sites, path: str, row: bytes) -> None:
    async def answer() -> bytes:
        return b'{"groups": [%s], "connect": [%s], "applications": [%s]}' % (row, row, row)

    async with beside(sites.streams, answer):
        view = await asked(sites.streams, path)
    if "groups" in view:
        assert GROUP in [each["group"] for each in view["groups"]]


async def test_sixteen_silent_instances_hold_views_back_together(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_views, "_FIRST_SECONDS", 0.5)
    monkeypatch.setattr(peer_views, "_SHORTLY_SECONDS", 0.1)
    views = ["overview", "transactions", "connect", "health"]
    paths = [*(f"/api/view?view={view}" for view in views), "/api/state", "/api/recent"]
    loop = asyncio.get_running_loop()
    async with server_that(asyncio.Event().wait) as address:
        others = {number: Peer(f"host:{number}", address) for number in range(1, 17)}
        sites.streams.state.held.count, sites.streams.state.held.others = 17, others
        began = loop.time()
        await asyncio.gather(*(asked(sites.streams, path) for path in paths))
        assert loop.time() - began < 1.5  # one after the other takes 3 s


async def test_events_have_a_part_soon_after_it_came_late(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_views, "_FIRST_SECONDS", 1.0)

    async def answer() -> bytes:
        await asyncio.sleep(1.3)
        return b'{"groups": [{"group": "came-late", "partitions": 1}]}'

    async with (
        beside(sites.streams, answer),
        asyncio.timeout(4),
        sites.streams.get("/api/events?view=overview") as events,
    ):
        assert b'"came-late"' not in await events.content.readuntil(b"\n\n")
        while b'"came-late"' not in await events.content.readuntil(b"\n\n"):
            pass


async def test_of_one_that_did_not_answer_no_other_view_waits_long(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_patience(monkeypatch, first=0.5, shortly=0.05, in_all=0.2)
    loop = asyncio.get_running_loop()
    async with beside(sites.streams, asyncio.Event().wait):
        await asked(sites.streams, "/api/view?view=overview")
        monkeypatch.setattr(peer_views, "_SECONDS", 10.0)
        began = loop.time()
        await asked(sites.streams, "/api/view?view=overview&find=x")
        assert loop.time() - began < 0.4


async def test_the_bytes_of_all_parts_are_bounded(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_views, "_KEPT_BYTES", 250_000)

    async def answer() -> bytes:
        return b" " * 100_000 + b"{}"

    async with beside(sites.streams, answer):
        for find in "abcdef":
            await asked(sites.streams, f"/api/view?view=overview&find={find}")
    kept = [of for of in sites.streams.server._peer_views._asked.values() if of.kept is not None]
    assert 1 <= len(kept) <= 3


async def test_fifty_listeners_on_each_of_two_that_ask_each_other(sites: Sites) -> None:
    async with contextlib.AsyncExitStack() as stack:
        listeners = []
        for site in sites:
            for number in range(50):
                connected = site.connected(f"127.0.0.{2 + number % 2}")
                listeners.append(await stack.enter_async_context(connected))
                view = ("overview", "transactions", "connect", "health")[number % 4]
                await listeners[-1].ask(f"/api/events?view={view}")
        async with asyncio.timeout(30):
            for listener in listeners:
                assert b" 200 OK" in await listener.head()
                for _ in range(3):
                    data = await listener.reader.readuntil(b"\n\n")
                    assert b'"why":"it has not' not in data
    async with asyncio.timeout(20):
        for site in sites:
            while site.server._streams._taken:  # noqa: ASYNC110 - nothing tells when it is so
                await asyncio.sleep(0.01)


async def test_an_answer_that_is_too_large_costs_its_part(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_views, "_MOST_BYTES", 1 << 20)

    async def answer() -> bytes:
        return b" " * (2 << 20)

    async with beside(sites.streams, answer):
        view = await asked(sites.streams, "/api/view?view=overview")
    assert view["instances"][0]["why"] == "its answer has more than 1 MB"


@contextlib.asynccontextmanager
async def beside(site: Site, answers: Any) -> AsyncIterator[None]:
    """Let an instance know, as the other one, a server that answers with what a coroutine function returns."""
    async with server_that(answers) as address:
        site.state.held.others = {1: Peer("host:1", address)}
        yield


def set_patience(
    monkeypatch: pytest.MonkeyPatch, *, first: float, shortly: float, in_all: float
) -> None:
    """Set how long views wait for an instance (s)."""
    monkeypatch.setattr(peer_views, "_FIRST_SECONDS", first)
    monkeypatch.setattr(peer_views, "_SHORTLY_SECONDS", shortly)
    monkeypatch.setattr(peer_views, "_SECONDS", in_all)


@contextlib.asynccontextmanager
async def server_that(answers: Any) -> AsyncIterator[str]:
    """Serve what a coroutine function returns; yields the URL."""

    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=await answers())

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0])
    finally:
        await runner.cleanup()
