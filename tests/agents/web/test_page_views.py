"""The page's addresses and views over HTTP: deep links, pushed and answered, refused where wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from caughtup.agents.process.health import Health
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
