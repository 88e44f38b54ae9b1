"""An instance answers for a group that another has: as that one does, or with a reason."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from aiohttp.typedefs import Handler
from yarl import URL

from caughtup.agents.process.health import Health
from caughtup.agents.web import peers
from caughtup.agents.web.addresses import FORWARDED, MISSING
from caughtup.agents.web.peers import named_group
from caughtup.models.sharing import Peer
from tests.support.groups.records import GROUP, commit
from tests.support.observability.site import Site
from tests.support.states import cluster_state, everything, read


class Two(NamedTuple):
    """An instance that has the groups, and one that has none."""

    having: Site
    other: Site

    def given_to(self, address: str) -> None:
        """Have the other know an address for all groups."""
        self.other.state.held.others = {0: Peer("host:1", address)}


@pytest.fixture
def token(tmp_path: Path) -> Path:
    (path := tmp_path / "token").write_text("tell-nobody")
    return path


@pytest.fixture
async def two(token: Path) -> AsyncIterator[Two]:
    async with (
        Site(everything(), Health(ready=True), web_token_file=token) as having,
        Site(cluster_state(), Health(ready=True), web_token_file=token) as other,
    ):
        held = other.state.held
        held.count, held.numbers = 1, frozenset()
        pair = Two(having, other)
        pair.given_to(having.url(""))
        yield pair


BEARER = {"Authorization": "Bearer tell-nobody"}


@pytest.mark.parametrize(
    "path",
    [
        f"/api/lag?group={GROUP}",
        f"/api/lag?group={GROUP}&limit=2",
        f"/api/view?group={GROUP}",
        f"/api/configs?group={GROUP}",
        f"/api/groups/{GROUP}/why",
        f"/api/groups/{GROUP}/recent",
        "/api/groups/no%2Fsuch%20one/why",
        f"/api/groups/{GROUP}/safe?instances=x",
    ],
)
async def test_it_answers_as_the_one_that_has_the_group(two: Two, path: str) -> None:
    for method in ("GET", "HEAD"):
        async with two.having.client.request(
            method, URL(two.having.url(path), encoded=True), headers=BEARER
        ) as expected:
            body = await expected.read()
        async with two.other.client.request(
            method, URL(two.other.url(path), encoded=True), headers=BEARER
        ) as answer:
            assert answer.status == expected.status
            assert answer.content_type == expected.content_type
            assert answer.headers.get("Link") == expected.headers.get("Link")
            assert await answer.read() == body


async def test_events_are_passed_on_as_they_come(two: Two) -> None:
    async with two.other.get(f"/api/events?group={GROUP}", headers=BEARER) as answer:
        assert answer.status == 200
        assert await answer.content.readline() == b"event: state\n"
        data = await answer.content.readline()
    assert json.loads(data.removeprefix(b"data: "))["view"] == "group"


async def test_a_forwarded_request_is_not_forwarded_again(two: Two) -> None:
    headers = {**BEARER, FORWARDED: "1"}
    async with two.other.get(f"/api/lag?group={GROUP}", headers=headers) as answer:
        assert (answer.status, await answer.read()) == (200, b"")


@pytest.mark.parametrize("path", ["/api/lag", "/api/connect", "/api/configs", "/api/transactions"])
async def test_lines_are_those_of_all_instances(two: Two, path: str) -> None:
    async with two.having.get(path, headers=BEARER) as expected:
        lines = await expected.read()
    async with two.other.get(path, headers=BEARER) as answer:
        assert MISSING not in answer.headers
        assert await answer.read() == lines
    async with two.other.get(path, headers={**BEARER, FORWARDED: "1"}) as answer:
        assert await answer.read() == b""


async def test_several_groups_are_asked_of_all(two: Two) -> None:
    async with two.other.get(f"/api/lag?group={GROUP}&group=plain", headers=BEARER) as answer:
        found = {json.loads(line)["group"] for line in (await answer.read()).splitlines()}
    assert found == {GROUP, "plain"}


async def test_the_part_of_an_instance_that_does_not_answer_is_named(two: Two) -> None:
    two.given_to("http://127.0.0.1:1")
    async with two.other.get("/api/lag", headers=BEARER) as answer:
        assert (answer.status, answer.headers[MISSING]) == (200, "host:1")


async def test_a_partition_that_no_instance_has_is_named(two: Two) -> None:
    two.other.state.held.count = 20
    for path in ("/api/lag", "/api/lag?limit=5", "/api/connect"):
        async with two.other.get(path, headers=BEARER) as answer:
            named = "no instance yet (partition 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 9 more)"
            assert (answer.status, answer.headers[MISSING]) == (200, named)
    async with two.other.get("/api/reassignments", headers=BEARER) as answer:
        assert MISSING not in answer.headers


async def test_the_part_of_an_instance_that_is_silent_is_named(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_BEGIN_SECONDS", 0.2)
    gone = asyncio.Event()

    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    two.given_to(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        async with two.other.get("/api/lag", headers=BEARER) as answer:
            assert (answer.status, answer.headers[MISSING]) == (200, "host:1")
    finally:
        gone.set()
        server.close()


async def pages(site: Site, path: str) -> list[bytes]:
    """Return the lines of all pages, from the first on."""
    lines, url = [], URL(site.url(path))
    while True:
        async with site.client.get(url, headers=BEARER) as answer:
            assert answer.status == 200
            lines += (await answer.read()).splitlines()
            if "next" not in answer.links:
                return lines
            url = answer.links["next"]["url"]


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
@pytest.mark.parametrize("named", ["", "&group=zz&group=plain&group=mine&group=orders"])
async def test_pages_have_the_lines_of_all_instances_sorted_by_group(
    two: Two, limit: int, named: str
) -> None:
    for group in ("mine", "zz"):
        read(two.other.state, *(commit(number, 5, group=group) for number in range(3)))
    async with two.other.get(f"/api/lag?x=1{named}", headers=BEARER) as answer:
        expected = (await answer.read()).splitlines()
    order = re.findall("group=([a-z]+)", named)
    expected.sort(key=lambda line: place(json.loads(line)["group"], order))
    assert await pages(two.other, f"/api/lag?limit={limit}{named}") == expected


def place(group: str, order: list[str]) -> tuple[int, str]:
    return order.index(group) if order else 0, group


async def test_without_the_token_nothing_is_forwarded(two: Two) -> None:
    async with two.other.get(f"/api/lag?group={GROUP}") as answer:
        assert answer.status == 401


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://127.0.0.1:1", "Cannot connect"),
        ("", "set web_address"),
        ("http://user:secret@127.0.0.1", "set web_address"),
        ("file:///etc/passwd", "set web_address"),
        ("http://127.0.0.1:1/path", "set web_address"),
        (f"http://{'a' * 400}", "set web_address"),
        ("http://h:99999", "set web_address"),
        ("http://h:abc", "set web_address"),
        ("http://[::1", "set web_address"),
        ("http://:80", "set web_address"),
    ],
)
async def test_who_does_not_answer_is_named_with_the_reason(
    two: Two, address: str, why: str
) -> None:
    two.given_to(address)
    async with two.other.get(f"/api/lag?group={GROUP}", headers=BEARER) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        said = (await answer.json())["error"]
    assert "the instance host:1 has this group" in said
    assert why in said
    async with two.other.get("/api/lag", headers=BEARER) as answer:
        assert (answer.status, answer.headers[MISSING]) == (200, "host:1")


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("/api/lag?group=a", "a"),
        ("/api/lag?group=a&group=a", "a"),
        ("/api/lag?group=a&group=b", None),
        ("/api/lag", None),
        ("/metrics?group=a", None),
    ],
)
def test_a_request_is_about_one_group_or_none(path: str, group: str | None) -> None:
    request: web.Request = make_mocked_request("GET", path)
    assert named_group(request) == group


async def test_an_address_that_leads_back_to_the_instance_is_said(two: Two) -> None:
    two.given_to(two.other.url(""))
    read(two.other.state, commit(0, 5, group="mine"))
    async with two.other.get("/api/lag?group=theirs", headers=BEARER) as answer:
        assert answer.status == 503
        assert "is this instance itself: set web_address there" in (await answer.json())["error"]
    async with two.other.get("/api/lag", headers=BEARER) as answer:
        assert answer.headers[MISSING] == "host:1"
        assert len((await answer.read()).splitlines()) == 1
    async with two.other.get("/api/view?view=overview", headers=BEARER) as answer:
        view = await answer.json()
    assert sum(view["statuses"].values()) == 1
    assert "set web_address there" in view["instances"][0]["why"]


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (401, "give all instances the same web_token_file"),
        (421, "it does not know the host 127.0.0.1: add it to web_allowed_hosts there"),
        (302, "it answers 302"),
        (200, "it answers with 'text/html'"),
    ],
)
async def test_an_answer_that_is_not_for_the_client_is_said_and_not_passed_on(
    two: Two, status: int, why: str
) -> None:
    async def answer(_: web.Request) -> web.Response:
        headers = {"Location": two.having.url("/api/lag")}
        return web.Response(status=status, headers=headers, content_type="text/html")

    async with serving(answer) as address:
        two.given_to(address)
        async with two.other.get(f"/api/lag?group={GROUP}", headers=BEARER) as passed:
            assert passed.status == 503
            assert why in (await passed.json())["error"]


async def test_a_link_to_another_host_is_not_passed_on(two: Two) -> None:
    async def answer(_: web.Request) -> web.Response:
        link = '<http://evil.example.com/>; rel="next"'
        return web.json_response({}, headers={"Link": link})

    async with serving(answer) as address:
        two.given_to(address)
        async with two.other.get(f"/api/lag?group={GROUP}", headers=BEARER) as passed:
            assert passed.status == 200
            assert "Link" not in passed.headers


@pytest.mark.parametrize("address", [f"http://{'a' * 290}", "http://a..b", "http://a\0b"])
async def test_a_host_that_cannot_be_one_costs_its_part(two: Two, address: str) -> None:
    two.other.state.held.others = {0: Peer("a\nb: c\x7f", address)}
    async with two.other.get(f"/api/lag?group={GROUP}", headers=BEARER) as answer:
        assert answer.status == 503
    for path in ("/api/lag", "/api/lag?limit=5"):
        async with two.other.get(path, headers=BEARER) as answer:
            assert (answer.status, answer.headers[MISSING]) == (200, "a?b: c?")
    async with two.other.get("/api/view?view=overview", headers=BEARER) as answer:
        assert (await answer.json())["instances"][0]["why"]


async def test_forwarded_events_leave_connections_for_views_and_lists(two: Two) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path != "/api/events":
            return web.json_response({"statuses": {"ok": 7}})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await asyncio.sleep(60)
        return response

    async with serving(answer) as address, AsyncExitStack() as stack:
        two.given_to(address)
        for number in range(50):
            connected = await stack.enter_async_context(
                two.other.connected(f"127.0.0.{2 + number % 2}")
            )
            path = f"/api/events?group={GROUP} HTTP/1.1\r\nAuthorization: Bearer tell-nobody"
            connected.writer.write(f"GET {path}\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert b" 200 OK" in await connected.head()
        async with two.other.get("/api/lag", headers=BEARER) as answered:
            assert MISSING not in answered.headers
        async with two.other.get("/api/view?view=overview", headers=BEARER) as answered:
            assert (await answered.json())["statuses"] == {"ok": 7}


@asynccontextmanager
async def serving(answer: Handler) -> AsyncIterator[str]:
    """Serve an answer at all paths; the URL."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0])
    finally:
        await runner.cleanup()
