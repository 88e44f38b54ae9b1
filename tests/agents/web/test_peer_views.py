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


async def test_one_that_is_silent_holds_a_view_back_once(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_views, "_FIRST_SECONDS", 0.2)
    monkeypatch.setattr(peer_views, "_SHORTLY_SECONDS", 0.05)
    monkeypatch.setattr(peer_views, "_SECONDS", 0.4)
    loop = asyncio.get_running_loop()
    async with server_that(asyncio.Event().wait) as address:
        sites.streams.state.held.others = {1: Peer("host:1", address)}
        view = await asked(sites.streams, "/api/view?view=overview")
        assert view["instances"][0]["why"] == "it has not answered yet"
        await asyncio.sleep(0.5)
        began = loop.time()
        view = await asked(sites.streams, "/api/view?view=overview")
        assert "has not answered for" in view["instances"][0]["why"]
        assert [row["group"] for row in view["groups"]] == [GROUP]
        assert loop.time() - began < 0.2


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"groups": 5}', b'{"feed": [{"at_ms": "x"}]}', b"\xff" * 100]
)
async def test_an_answer_that_is_none_costs_its_part(sites: Sites, body: bytes) -> None:
    async def answer() -> bytes:
        return body

    async with server_that(answer) as address:
        sites.streams.state.held.others = {1: Peer("host:1", address)}
        view = await asked(sites.streams, "/api/view?view=overview")
    assert [row["group"] for row in view["groups"]] == [GROUP]
    assert view["instances"][0]["why"]


async def test_an_answer_that_is_too_large_costs_its_part(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_views, "_MOST_BYTES", 1 << 20)

    async def answer() -> bytes:
        return b" " * (2 << 20)

    async with server_that(answer) as address:
        sites.streams.state.held.others = {1: Peer("host:1", address)}
        view = await asked(sites.streams, "/api/view?view=overview")
    assert view["instances"][0]["why"] == "its answer has more than 1 MB"


@contextlib.asynccontextmanager
async def server_that(answers: Any) -> AsyncIterator[str]:
    """Serve whatever a coroutine function returns; the URL."""

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
