"""The page told things that nobody plans for, in a real browser."""

from __future__ import annotations

import re

import pytest

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import LIVE, PageServer, comes_back, serving
from tests.observability.page_states import (
    application,
    event,
    group,
    now_ms,
    partition,
    reassignment,
    recent,
    state,
    stream,
)

#: Arabic letters, and a character that turns round what follows it.
NAME = "\u202eطلبات-" * 31 + "a"
MARKUP = "<img src=x onerror=\"document.title='owned'\"><b>"


async def test_a_name_of_249_characters_from_right_to_left_disturbs_nothing_around_it(
    page: Page,
) -> None:
    name = NAME[:249]
    told = application(name)
    told["clients"][1]["name"] = name
    groups = [group(name, "slow", why="it reads", lag=12_345), group("plain", "ok", lag=1)]
    feed = [event("a member left", group=name)]
    order = (
        "(row => [...row.cells].map(c => c.getBoundingClientRect().x))"
        "(document.querySelector('.groups tbody tr'))"
    )
    async with serving(state(applications=[told], groups=groups, feed=feed)) as server:
        for address in (server.url, server.group(name)):
            await page.open(address, width=800)
            await page.until(f"{TEXT}.includes('12,345')")
            if address == server.url:
                places = await page.evaluate(order)
                assert places == sorted(places)
            root = "document.documentElement"
            assert await page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")
            isolated = (
                "[...document.querySelectorAll('main *')].filter(e => e.children.length === 0 &&"
                " e.textContent.includes('طلبات')).every(e => ['isolate', 'isolate-override',"
                " 'plaintext'].includes(getComputedStyle(e).unicodeBidi) ||"
                " e.textContent.includes('\\u2068'))"
            )
            assert await page.evaluate(isolated)
        label = await page.evaluate(
            "document.querySelector('td.warmup').getAttribute('aria-label')"
        )
        assert f"Task 0_1 on \u2068{name}\u2069. warm-up" in label
        assert page.errors == []


async def test_an_application_that_comes_and_goes_is_there_or_not_and_the_rest_stays(
    page: Page,
) -> None:
    async with serving(state(groups=[group("orders", "ok", lag=7)])) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('7 offsets')")
        await page.until(LIVE)
        for n in range(6):
            there = n % 2 == 0
            apps = [application()] if there else []
            server.state = state(groups=[group("orders", "ok", lag=70 + n)], applications=apps)
            server.push()
            await page.until(f"{TEXT}.includes('{70 + n} offsets')")
            cells = "document.querySelectorAll('td.copy').length"
            assert await page.evaluate(cells) == (3 if there else 0)
        assert page.errors == []


async def test_a_clock_that_is_an_hour_off_changes_no_age(page: Page) -> None:
    told = application()
    told["probing"]["due_ms"] = now_ms() + 600_000
    feed = [event("a member joined", group="orders") | {"at_ms": now_ms() - 120_000}]
    hour_ahead = "Date.now = (now => () => now() + 3_600_000)(Date.now.bind(Date))"
    async with serving(state(applications=[told], feed=feed)) as server:
        await page.send("Page.enable")
        await page.send("Page.addScriptToEvaluateOnNewDocument", source=hour_ahead)
        await page.open(server.group())
        text = await page.until(f"{TEXT}.includes('probing in') && {TEXT}")
        assert "probing in 9 min" in text or "probing in 10 min" in text
        assert "2 min" in text
        assert re.search(r"\b(6\d min|1\.\d h)\b", text) is None
        assert page.errors == []


async def test_while_the_connection_is_lost_the_page_says_how_old_it_is(page: Page) -> None:
    server = PageServer(state(applications=[application()]))
    await server.start()
    await page.open(server.group())
    await page.until(LIVE)
    await server.stop()
    said = rf"({TEXT}.match(/the last answer, (\d+)(?:\.\d)? s old, of .*\d\d:\d\d/) ?? [])[1]"
    first = int(await page.until(said))
    # A minute goes by: the page's own clock counts, whatever the machine's says.
    later = "performance.now = (now => () => now() + {})(performance.now.bind(performance))"
    await page.evaluate(later.format(60_000))
    await page.until(rf"/the last answer, [67]\d s old/.test({TEXT})")
    assert first < 60
    assert "orders-b" in await page.evaluate(TEXT)
    await page.evaluate(later.format(40_000))
    await page.until(rf"/probing in 8 min/.test({TEXT})")
    await comes_back(server, page)


async def test_names_from_kafka_are_text_and_never_markup(page: Page) -> None:
    hostile = application(MARKUP)
    hostile["clients"][0]["name"] = hostile["probing"]["carried_by"] = MARKUP
    hostile["recommendation"]["movements"][0]["reason"] = MARKUP
    groups = [group(MARKUP, "slow", why=MARKUP, group_type=MARKUP, lag=5)]
    told = state(
        applications=[hostile],
        groups=groups,
        cluster=MARKUP,
        streams=[stream(MARKUP, "failed", why=MARKUP)],
        reassignments=[reassignment(MARKUP, "stalled", cause=MARKUP, why=MARKUP, advice=MARKUP)],
    )
    async with serving(told) as server:
        for address in (server.url, server.group(MARKUP), f"{server.url}reassignments"):
            await page.open(address)
            await page.until(f"{TEXT}.includes('onerror')")
            assert await page.evaluate("document.images.length") == 0
            assert await page.evaluate("document.title") != "owned"
        assert page.errors == []


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_is_wider_than_the_window(page: Page, width: int, scheme: str) -> None:
    groups = [group(f"{'long-name-' * 12}{n}", "slow", why="w" * 300, lag=n) for n in range(200)]
    long = {"cause": "long-cause-" * 12, "why": "w" * 300, "advice": "a" * 300}
    moving = [reassignment("long-name-" * 24, "dead target", **long)]
    throttle = {"kind": "topic", "name": "long-name-" * 24, "what": "w" * 300, "advice": "a" * 300}
    partitions = [partition(n, "slow", topic="long-name-" * 24, why="w" * 300) for n in range(9)]
    told = state(
        applications=[application("a" * 249, tasks=300)],
        groups=groups,
        reassignments=moving,
        throttles=[throttle],
        partitions=partitions,
        feed=[event("t" * 300, group="a" * 249, why="w" * 300)],
        streams=[stream("long-name-" * 12, "failed", why="w" * 300)],
    )
    cells = "document.querySelectorAll('td.copy').length > 290"
    drawn = cells if width > 400 else "document.querySelector('[data-heat]')?.height > 10"
    async with serving(told, recent=recent()) as server:
        await page.scheme(scheme)
        for address, there in (
            (server.group("a" * 249), drawn),
            (server.url, "document.querySelectorAll('.groups tbody tr').length > 40"),
            (f"{server.url}reassignments", f"{TEXT}.includes('orphaned throttle')"),
        ):
            await page.open(address, width=width)
            await page.until(there)
            root = "document.documentElement"
            assert await page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), address
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(244, 245, 243)", "dark": "rgb(18, 22, 21)"}[scheme]
        assert page.errors == []
