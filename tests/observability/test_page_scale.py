"""The page at sizes that nobody scrolls through, in a real browser."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import serving
from tests.observability.page_states import event, group, large, partition, recent, state

HEAT = "document.querySelector('[data-heat]')"
WINDOW = 900


def fleet(clients: int, tasks: int, subtopologies: int = 2) -> dict[str, Any]:
    return state(
        applications=[large(clients, tasks, subtopologies)],
        groups=[group("fleet", "ok", lag=12, lag_seconds=0.2)],
        partitions=[partition(n) for n in range(500)],
        feed=[event(f"generation {n}", group="fleet") for n in range(100)],
    )


async def test_50_clients_and_500_tasks_are_drawn_at_once_and_kept_up_to_date_cheaply(
    page: Page,
) -> None:
    async with serving(fleet(50, 500), recent=recent()) as server:
        await page.open("about:blank", width=1400, height=WINDOW)
        await page.open(server.group("nobody"), width=1400, height=WINDOW)
        await page.until(f"{TEXT}.includes('There is no group')")
        before = await page.cpu_seconds()
        await page.evaluate(
            "(a => { a.href = a.href.replace('?find=nobody', 'groups/fleet'); a.click(); })"
            "(document.querySelector('.points a'))"
        )
        await page.until(f"{HEAT}?.height > 100")
        await page.until("document.querySelectorAll('.partitions tbody tr').length === 20")
        drawn = await page.cpu_seconds() - before
        assert drawn < 1.0
        assert await page.evaluate("document.documentElement.scrollHeight") < 3 * WINDOW
        before, updates = await page.cpu_seconds(), 3
        for n in range(updates):
            told = copy.deepcopy(server.state)
            told["applications"][0]["tasks"][n]["copies"][1]["lag"] = 1_000 + n
            server.state = told
            server.push()
            await asyncio.sleep(1)  # as often as the service pushes
        share = (await page.cpu_seconds() - before) / updates
        assert share < 0.2
        print(f"drawn in {drawn:.2f} s of CPU, updates take {100 * share:.0f} % of a core")
        assert page.errors == []


@pytest.mark.parametrize("width", [1400, 400])
async def test_a_heat_map_of_500_clients_and_1000_tasks_is_walked_and_zoomed(
    page: Page, width: int
) -> None:
    async with serving(fleet(500, 1_000, 1)) as server:
        await page.open(server.group("fleet"), width=width, height=WINDOW)
        await page.until(f"{HEAT}?.height > 100")
        assert await page.evaluate(f"{HEAT}.clientHeight") <= 2 * WINDOW
        assert await page.evaluate("document.querySelectorAll('td.copy').length") == 0
        await page.evaluate("document.querySelector('.heatmap').focus()")
        for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
            await page.press(key)
        said = "document.getElementById('heat-cell').textContent"
        name = "orders-streams-7d9f8b6c5-00001-StreamThread"
        assert (await page.evaluate(said)).startswith(f"Task 0_1 on {name}. active")
        await page.press("Enter")
        await page.until("document.querySelectorAll('td.copy').length > 8")
        names = "[...document.querySelectorAll('.band tbody .name')].map(n => n.innerText)"
        shown = await page.evaluate(names)
        assert len(shown) == len(set(shown)) == 10
        assert "00001" in shown  # what all share is left out, and said once
        assert "orders-streams-7d9f8b6c5-…-StreamThread" in await page.evaluate(
            "document.querySelector('.band th.common').innerText"
        )
        address = await page.evaluate("location.href")
        await page.open(address, width=width, height=WINDOW)
        await page.until("document.querySelectorAll('td.copy').length > 8")
        root = "document.documentElement"
        assert await page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")
        assert page.errors == []


async def test_pointing_at_a_heat_map_says_what_is_there_and_a_click_shows_its_cells(
    page: Page,
) -> None:
    async with serving(fleet(50, 500)) as server:
        await page.open(server.group("fleet"), width=1400, height=WINDOW)
        await page.until(f"{HEAT}?.height > 100")
        await page.evaluate(f"{HEAT}.scrollIntoView({{ block: 'start' }})")
        # Scrolling takes a tip away, in the frame after it.
        await page.evaluate(
            "new Promise(done => requestAnimationFrame(() => setTimeout(done)))", settled=True
        )
        left, top = await page.evaluate(f"(b => [b.x, b.y])({HEAT}.getBoundingClientRect())")
        await page.point_at(left + 151, top + 1)
        tip = "document.getElementById('tip')"
        told = await page.until(f"!{tip}.hidden && {tip}.innerText")
        assert told.startswith("Task 0_0 on orders-streams-7d9f8b6c5-00000-StreamThread\nactive")
        await page.click_at(left + 151, top + 1)
        await page.until("document.querySelectorAll('td.copy').length > 8")
        assert await page.evaluate("new URLSearchParams(location.search).get('zoom')") == "0_0|p-0"
        # A warm-up's figure is an estimate: hatched, and its movement has the same figure.
        assert await page.evaluate("document.querySelectorAll('td.warmup.soft').length") == 0
        moved = "document.querySelector('.moves tbody tr').innerText"
        assert "9.3K" in await page.evaluate(moved)
        await page.click("document.querySelector('[data-choose=zoom]')")
        await page.until("document.querySelectorAll('td.copy').length === 0")
        assert page.errors == []


async def test_of_3000_groups_the_worst_are_told_and_the_others_are_found_by_the_service(
    page: Page,
) -> None:
    groups = [group(f"team-{n}", "slow" if n < 40 else "ok", lag=n) for n in range(3_000)]
    rows = "document.querySelectorAll('.groups td.name').length"
    async with serving(state(groups=groups)) as server:
        await page.open(server.url, width=1400, height=WINDOW)
        await page.until(f"{rows} === 30")
        assert await page.evaluate("document.documentElement.scrollHeight") < 3 * WINDOW
        text = await page.evaluate(TEXT)
        assert "Groups 3,000" in " ".join(text.split())
        assert "1,000 more, none of them worse than these" in text
        await page.click("document.querySelector('[data-choose=rows]')")
        await page.until(f"{rows} === 130")
        await page.evaluate("document.querySelector('[type=search]').focus()")
        for key in "2999":
            await page.press(key)
        await page.until(f"{rows} === 1")
        # On a slow machine the page asks for 299 in between, and finds the row in that answer.
        async with asyncio.timeout(30):
            while not any("find=2999" in asked for asked in server.asked):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await page.until(f"{rows} === 1")
        assert page.errors == []
