"""The web server on loopback: the page, its state, its events, ``/metrics`` and ``/ready``."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.web import lines
from caughtup.agents.web.server import WebServer, static_files
from tests.support.groups.records import GROUP
from tests.support.observability.site import Site
from tests.support.states import HOSTILE, NOW_MS, cluster_state, everything

PATHS = (
    *("/", "/page.js", "/style/page.css", "/metrics", "/ready"),
    *("/api/state", "/api/events", "/api/lag", "/api/reassignments", "/api/configs"),
)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site(everything(), Health()) as running:
        yield running


async def event(response: aiohttp.ClientResponse) -> Any:
    """Read the next server-sent event and give its data."""
    assert await response.content.readline() == b"event: state\n"
    data = await response.content.readline()
    assert data.startswith(b"data: ")
    assert await response.content.readline() == b"\n"
    return json.loads(data.removeprefix(b"data: "))


async def test_it_becomes_ready_when_the_reader_has_caught_up(site: Site) -> None:
    async with site.get("/ready") as response:
        assert (response.status, await response.text()) == (503, "catching up\n")
    site.health.reader_lag = 1_234
    async with site.get("/ready") as response:
        assert response.status == 503
        assert await response.text() == ("catching up: 1234 records of __consumer_offsets to go\n")
    site.health.ready = True
    async with site.get("/ready") as response:
        assert (response.status, await response.text()) == (200, "ready\n")


async def test_metrics_parse_as_what_their_content_type_says(site: Site) -> None:
    site.health.ready = True
    async with site.get("/metrics") as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        text = await response.text()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    groups = {s.labels["group"] for s in families["caughtup_group_lag_records"].samples}
    assert groups == {GROUP, "plain", HOSTILE, "sharing"}
    asked = {"Accept": "application/openmetrics-text; version=1.0.0"}
    async with site.get("/metrics", headers=asked) as response:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text")
        assert (await response.text()).endswith("# EOF\n")


async def test_the_state_is_json_of_this_moment(site: Site) -> None:
    async with site.get("/api/state") as response:
        assert response.content_type == "application/json"
        found = await response.json()
    assert (found["now_ms"], found["ready"], found["cluster"]) == (NOW_MS, False, "cluster-1")
    assert HOSTILE in {group["group"] for group in found["groups"]}
    site.health.ready = True
    async with site.get("/api/state") as response:
        assert (await response.json())["ready"] is True


async def test_events_bring_the_state_and_then_what_changed(site: Site) -> None:
    async with site.get("/api/events") as response:
        assert response.content_type == "text/event-stream"
        first = await event(response)
        async with site.get("/api/state") as whole:
            assert first == await whole.json()
        site.health.ready = True
        while not (await event(response))["ready"]:
            pass  # a push that was under way; the request's own timeout ends this


async def test_a_hostile_name_cannot_end_an_event(site: Site) -> None:
    async with site.get("/api/events") as response:
        data = await event(response)
    assert HOSTILE in {group["group"] for group in data["groups"]}


async def test_the_server_stops_while_somebody_listens_to_events() -> None:
    async with Site(cluster_state(), Health()) as site:
        response = await site.get("/api/events")
        await event(response)
        async with asyncio.timeout(10):
            await site.server.stop()
        response.close()


@pytest.mark.parametrize("path", [*PATHS, "/nothing/here"])
async def test_every_answer_forbids_what_the_page_does_not_need(site: Site, path: str) -> None:
    async with site.get(path) as response:
        policy = response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["Cache-Control"] == "no-store"
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == directives["frame-ancestors"] == "'none'"
    assert directives["script-src"] == "'self'"
    assert "unsafe" not in policy


async def test_every_file_of_the_page_is_served_as_what_it_is(site: Site) -> None:
    files = list(static_files())
    assert {"index.html", "page.js", "style/page.css", "shell/dom.js"} <= {
        name for name, _, _ in files
    }
    for name, body, kind in files:
        async with site.get("/" if name == "index.html" else f"/{name}") as response:
            assert (response.status, response.content_type) == (200, kind)
            assert response.charset == "utf-8"
            assert await response.read() == body


@pytest.mark.parametrize(
    "path", ["/../settings.py", "/%2e%2e/settings.py", "/static/page.js", "/web.py"]
)
async def test_nothing_else_is_served(site: Site, path: str) -> None:
    async with site.get(path) as response:
        assert response.status == 404


async def test_nothing_can_be_sent_to_it(site: Site) -> None:
    for path in PATHS:
        async with site.client.post(f"http://127.0.0.1:{site.server.port}{path}") as response:
            assert response.status == 405


async def test_a_port_that_is_taken_is_an_error_at_the_start() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = WebServer(Settings(web_port=taken.getsockname()[1]), cluster_state(), Health())
        with pytest.raises(OSError, match="in use"):
            await server.on_start()
        await server.on_stop()


async def test_ready_says_what_is_wrong_beside_it_and_standing_by_is_not_ready(site: Site) -> None:
    site.health.ready = True
    site.health.topic_problems["caughtup-lag", "partitions"] = "3 partitions, not 1: hm"
    async with site.get("/ready") as response:
        assert response.status == 200
        assert await response.text() == "ready\ncaughtup-lag: 3 partitions, not 1: hm\n"
    site.health.standby = "host:1 is active"
    async with site.get("/ready") as response:
        assert response.status == 503
        assert (await response.text()).startswith("standby: host:1 is active\n")
    async with site.get("/ready?standby") as response:
        assert response.status == 200, "an orchestrator may count it as ready"
        assert (await response.text()).startswith("standby: host:1 is active\n")
    site.health.ready = False
    async with site.get("/ready?standby") as response:
        assert response.status == 503
        assert (await response.text()).startswith("catching up\n")
    async with site.get("/healthz") as response:
        assert response.status == 200


async def test_it_listens_on_an_address_of_ipv6(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "caughtup")
    server = WebServer(Settings(web_host="::1", web_port=0), cluster_state(), Health(ready=True))
    await server.start()
    try:
        url = f"http://[::1]:{server.port}/"
        async with aiohttp.ClientSession() as client, client.get(f"{url}ready") as response:
            assert (response.status, await response.text()) == (200, "ready\n")
    finally:
        await server.stop()
    assert f"the page: {url}" in caplog.text


async def test_lines_are_those_of_the_command_and_of_the_groups_that_are_named(site: Site) -> None:
    async with site.get("/api/lag") as response:
        assert response.content_type == "application/x-ndjson"
        every = [json.loads(line) for line in (await response.text()).split("\n")[:-1]]
    names = site.state.group_names()
    assert list(dict.fromkeys(line["group"] for line in every)) == names
    asked = [("group", "plain"), ("group", "no such"), ("group", HOSTILE), ("group", "plain")]
    async with site.get("/api/lag", params=asked) as response:
        found = [json.loads(line) for line in (await response.text()).split("\n")[:-1]]
    assert found == [line for name in ("plain", HOSTILE) for line in every if line["group"] == name]
    async with site.get("/api/configs", params=[*asked[1:2], ("group", GROUP)]) as response:
        (first, *configs) = [json.loads(line) for line in (await response.text()).splitlines()]
    assert {line["group"] for line in (first, *configs)} == {GROUP}
    assert first["changelogs"]
    assert {line["name"] for line in configs} >= {"num.standby.replicas", "assignor"}
    async with site.get("/api/reassignments") as response:
        (moving, *_) = [json.loads(line) for line in (await response.text()).splitlines()]
    assert (moving["kind"], moving["topic"]) == ("partition", "orders-in")


@pytest.mark.parametrize("limit", [1, 3, 10_000])
async def test_lines_come_in_pages_where_somebody_asks_for_them(site: Site, limit: int) -> None:
    async with site.get("/api/lag") as response:
        whole = await response.text()
        assert "Link" not in response.headers
    path, pages = f"/api/lag?limit={limit}", list[str]()
    while path:
        async with site.get(path) as response:
            assert response.content_type == "application/x-ndjson"
            pages.append(await response.text())
            path = str(response.links["next"]["url"].relative()) if response.links else ""
    assert "".join(pages) == whole
    lines = [page.count("\n") for page in pages]
    assert set(lines[:-1]) <= {limit}
    assert 0 < lines[-1] <= limit


async def test_a_page_goes_on_behind_a_group_that_has_gone(site: Site) -> None:
    first, *others = site.state.group_names()
    async with site.get("/api/lag", params={"cursor": f"1:{first}-gone"}) as response:
        found = [json.loads(line)["group"] for line in (await response.text()).split("\n")[:-1]]
    assert list(dict.fromkeys(found)) == others
    async with site.get("/api/lag", params={"cursor": f"0:{first}", "group": first}) as response:
        found = [json.loads(line)["group"] for line in (await response.text()).split("\n")[:-1]]
    assert set(found) == {first}


@pytest.mark.parametrize("asked", ["limit=0", "limit=10001", "limit=x", "cursor=x", "cursor=-1:a"])
async def test_pages_that_there_are_not_are_refused(site: Site, asked: str) -> None:
    async with site.get(f"/api/lag?{asked}") as response:
        assert response.status == 400
        assert (await response.json())["error"]


async def test_a_group_whose_lines_cannot_be_made_costs_itself_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lines.lag_lines

    def failing(state: Any, group: str) -> Any:
        if group == "plain":
            raise ZeroDivisionError
        return made(state, group)

    monkeypatch.setattr(lines, "lag_lines", failing)
    async with site.get("/api/lag") as response:
        found = {json.loads(line)["group"] for line in (await response.text()).split("\n")[:-1]}
    assert found == set(site.state.group_names()) - {"plain"}
    assert [(fault.part, fault.subject) for fault in site.state.faults.newest()] == [
        ("page", "plain")
    ]
