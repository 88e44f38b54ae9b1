"""The page told things that nobody plans for, in a real browser."""

from __future__ import annotations

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import PageServer, serving
from tests.observability.page_states import application, event, group, now_ms, state

#: Arabic letters, and a character that turns round what follows it.
NAME = "\u202eطلبات-" * 31 + "a"
LIVE = "document.querySelector('.link.ok') !== null"


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
        await page.until(f"{TEXT}.includes('7 records')")
        await page.until(LIVE)
        for n in range(6):
            there = n % 2 == 0
            apps = [application()] if there else []
            server.state = state(groups=[group("orders", "ok", lag=70 + n)], applications=apps)
            server.push()
            await page.until(f"{TEXT}.includes('{70 + n} records')")
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
        assert "1 h" not in text.replace("8 h 10 min by Kafka", "").replace("d 1 h ago", "")
        assert page.errors == []


async def test_while_the_connection_is_lost_the_page_says_how_old_it_is(page: Page) -> None:
    server = PageServer(state(applications=[application()]))
    await server.start()
    await page.open(server.group())
    await page.until(LIVE)
    await server.stop()
    said = rf"({TEXT}.match(/the last that was heard, (\d+) s ago, at .*\d\d:\d\d/) ?? [])[1]"
    first = int(await page.until(said))
    # A minute goes by: the page's own clock counts, whatever the machine's says.
    await page.evaluate(
        "performance.now = (now => () => now() + 60_000)(performance.now.bind(performance))"
    )
    await page.until(f"{TEXT}.includes('heard, 1 min')")
    assert first < 60
    assert "orders-b" in await page.evaluate(TEXT)
    await page.until(rf"/probing in 8 min/.test({TEXT})")
    await server.start()
    try:
        await page.until(LIVE)
        await page.until(f"!{TEXT}.includes('Connection lost')")
    finally:
        await server.stop()
