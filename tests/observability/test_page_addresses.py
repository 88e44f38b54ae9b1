"""Addresses of the page, in a real browser: links, back, reload, choices, the keyboard alone."""

from __future__ import annotations

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import serving
from tests.observability.page_states import (
    application,
    event,
    group,
    partition,
    reassignment,
    recent,
    state,
    stream,
)

GROUPS = "[aria-labelledby=groups]"
NAMES = f"[...document.querySelectorAll('{GROUPS} td.name')].map(cell => cell.innerText)"
STATE = state(
    applications=[application()],
    groups=[
        group("orders", "slow", why="33,000 offsets to read", lag=33_000, lag_seconds=372.0),
        group("bills", "ok", lag=5, lag_seconds=1.0),
        group("letters/é?", "stopped", why="nobody reads", lag=70, lag_seconds=9.0),
        group("caughtup-history", "ok", lag=0, own=True),
    ],
    partitions=[partition(0), partition(1, "slow", why="no faster than produced", lag=33_000)],
    reassignments=[reassignment("moved")],
    reassignment_counts={"moving": 1},
    streams=[stream("history")],
    feed=[event("2 members joined", group="orders", why="orders-b joined")],
)


async def test_each_address_shows_its_view_and_what_it_loads_from_any_depth(page: Page) -> None:
    async with serving(STATE, prefix="/tools/kafka", recent=recent()) as server:
        for address, said in {
            server.url: "33,000 offsets to read",
            f"{server.url}reassignments": "moved-0",
            f"{server.url}connect": "No Connect worker has joined a group yet",
            f"{server.url}streams": "batch 12 of 500 records",
            f"{server.url}health": "caughtup itself",
            server.group(): "Streams application",
            server.group("letters/é?"): "nobody reads",
            server.group("nobody"): "There is no group of this name",
        }.items():
            await page.open(address)
            # A page that was left and held its connection would have the seventh wait for a minute.
            await page.until(f"{TEXT}.includes('{said}')", seconds=40)
            assert (await page.evaluate("location.href")).rstrip("/") == address.rstrip("/")
        assert page.errors == []


async def test_links_go_without_loading_and_back_returns_with_what_was_chosen(page: Page) -> None:
    async with serving(STATE) as server:
        await page.open(f"{server.url}?sort=lag")
        await page.until(f"{NAMES}.length === 3")
        await page.evaluate("window.loaded = 'once'")
        await page.click(
            "[...document.querySelectorAll('.groups a')].find(a => /é/.test(a.innerText))"
        )
        await page.until(f"{TEXT}.includes('nobody reads') && {TEXT}.includes('Partitions')")
        assert await page.evaluate("location.pathname") == "/groups/letters%2F%C3%A9%3F"
        assert await page.evaluate("document.title") == "letters/é? · caughtup"
        assert await page.evaluate("document.activeElement.id") == "main"
        await page.click(
            "[...document.querySelectorAll('nav a')].find(a => /Health/.test(a.innerText))"
        )
        await page.until(f"{TEXT}.includes('caughtup itself')")
        assert (
            await page.evaluate("document.querySelector('[aria-current=page]').innerText")
            == "Health"
        )
        await page.evaluate("history.go(-2)")
        await page.until(f"{NAMES}.length === 3")
        assert await page.evaluate("location.search") == "?sort=lag"
        assert await page.evaluate(NAMES) == ["orders", "letters/é?", "bills"]
        assert await page.evaluate("window.loaded") == "once"
        assert page.errors == []


async def test_what_is_chosen_is_in_the_address_and_outlives_a_reload(page: Page) -> None:
    async with serving(STATE) as server:
        await page.open(server.url)
        await page.until(f"{NAMES}.length === 3")
        assert await page.evaluate(NAMES) == ["letters/é?", "orders", "bills"]  # the worst first
        chosen = "document.querySelector('[data-choose={}][data-value=\"{}\"]')"
        await page.click(chosen.format("sort", "group"))
        await page.until(f"{NAMES}.join() === 'bills,letters/é?,orders'")
        await page.click(chosen.format("sort", "-group"))
        await page.until(f"{NAMES}[0] === 'orders'")
        sorts = (
            "[...document.querySelectorAll('th[aria-sort]')].map(th => [th.innerText, th.ariaSort])"
        )
        assert await page.evaluate(sorts) == [["Group ▴", "ascending"]]
        await page.click(chosen.format("own", "1"))
        await page.until(f"{NAMES}.includes('caughtup-history')")
        await page.click(chosen.format("status", "ok"))
        await page.until(f"{NAMES}.join() === 'caughtup-history,bills'")
        await page.send("Page.reload")
        await page.until(f"{NAMES}.join() === 'caughtup-history,bills'")
        await page.click(chosen.format("status", ""))
        await page.until(f"{NAMES}.length === 4")
        assert await page.evaluate("location.search") == "?sort=-group&own=1"
        await page.click(chosen.format("kind", "streams"))
        await page.until(f"{NAMES}.join() === 'orders'")
        assert page.errors == []


async def test_the_keyboard_alone_finds_a_group_opens_it_and_reads_what_a_word_means(
    page: Page,
) -> None:
    dialog = "document.getElementById('glossary')"
    async with serving(STATE) as server:
        await page.open(server.url)
        await page.until(f"{NAMES}.length === 3")
        for key in "/ord":
            await page.press(key)
        await page.until(f"{NAMES}.join() === 'orders'")
        assert await page.evaluate("location.search") == "?find=ord"
        focused = "document.activeElement.closest('.groups td.name')?.innerText"
        for _ in range(12):
            await page.press("Tab")
            if await page.evaluate(focused) == "orders":
                break
        await page.press("Enter")
        await page.until(f"{TEXT}.includes('Streams application')")
        assert await page.evaluate("location.pathname + location.search") == "/groups/orders"
        await page.press("?")
        await page.until(
            f"{dialog}.open && {dialog}.innerText.includes('probing.rebalance.interval.ms')"
        )
        for word in ("match", "undetermined", "warm-up", "standby", "restoring", "stalled"):
            assert word in await page.evaluate(f"{dialog}.innerText")
        await page.press("Escape")
        await page.until(f"!{dialog}.open")
        await page.click("document.querySelector('.legend [data-word=warm-up]')")
        await page.until(f"{dialog}.querySelector('.wanted')?.innerText.startsWith('warm-up')")
        assert page.errors == []


async def test_a_word_leads_to_its_text_in_the_documentation(page: Page) -> None:
    async with serving({**STATE, "links": {"docs": "https://docs.example/caughtup"}}) as server:
        await page.open(server.url)
        await page.until(f"{NAMES}.length === 3")
        await page.press("?")
        more = "[...document.querySelectorAll('#glossary dd a')].map((each) => each.href)"
        found = await page.evaluate(more)
        assert "https://docs.example/caughtup/glossary/#:~:text=warm%2Dup" in found
        assert len(found) == await page.evaluate("document.querySelectorAll('#glossary dt').length")
        assert page.errors == []


async def test_a_group_has_its_partitions_its_hours_and_what_happened_with_reasons(
    page: Page,
) -> None:
    hours = recent(lag=[*map(float, range(59)), 3.0], warmups=[0.0] * 30 + [2.0] * 30)
    async with serving(
        {**STATE, "links": {"grafana": "https://g.example/d/1"}}, recent=hours
    ) as server:
        await page.open(server.group())
        await page.until("document.querySelectorAll('.chart canvas').length === 2")
        labels = await page.evaluate(
            "[...document.querySelectorAll('.chart')].map(c => c.ariaLabel)"
        )
        assert labels[0].startswith("Lag: 3 offsets, at most 58 (2 min")
        assert labels[1] == "Copies being built: 2 warm-ups"
        text = await page.evaluate(TEXT)
        for said in ("letters-1", "no faster than produced", "2 members joined", "orders-b joined"):
            assert said in text
        assert "generation 5: orders-c joined" in await page.evaluate(
            "document.querySelector('.marks').textContent"
        )
        chart = await page.evaluate(
            "(b => [b.x + b.width / 2, b.y + 30])(document.querySelector('.u-over').getBoundingClientRect())"
        )
        await page.point_at(*chart)  # where the rebalance is marked
        tip = "document.getElementById('tip')"
        told = await page.until(f"!{tip}.hidden && {tip}.innerText")
        assert "generation 5: orders-c joined" in told
        grafana = "[...document.links].find(a => /in Grafana/.test(a.innerText)).href"
        assert await page.evaluate(grafana) == "https://g.example/d/1?var-group=orders"
        assert page.errors == []
