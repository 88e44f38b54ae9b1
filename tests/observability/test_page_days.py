"""A group's charts over days, in a real browser: offered where there is a history, failing alone."""

from __future__ import annotations

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import serving
from tests.observability.page_states import group, partition, recent, state

TOLD = state(groups=[group("orders", "ok", lag=5)], partitions=[partition(0)])
CHOSEN = "document.querySelector('[data-choose=days][aria-pressed=true]')?.innerText"
WEEK = "document.querySelector('[data-choose=days][data-value=\"7\"]')"
FIRST = "document.querySelector('.chart')?.ariaLabel"


async def test_a_week_is_asked_for_when_it_is_chosen_and_outlives_a_reload(page: Page) -> None:
    days = recent(minutes=7 * 24 * 60 // 42, lag=[float(n) for n in range(240)])
    days["at_ms"] = [days["now_ms"] - (240 - n) * 2_520_000 for n in range(240)]
    async with serving({**TOLD, "history": True}, recent=recent(), days=days) as server:
        await page.open(server.group())
        await page.until(f"{CHOSEN} === '6 hours' && {FIRST}?.startsWith('Lag: 3.5K')")
        assert not any("history" in asked for asked in server.asked)
        await page.click(WEEK)
        await page.until(f"{CHOSEN} === 'a week' && {FIRST} === 'Lag: 239 offsets 42 min ago'")
        assert server.asked[-1] == "history?days=7"
        await page.send("Page.reload")
        await page.until(f"{CHOSEN} === 'a week' && {FIRST} === 'Lag: 239 offsets 42 min ago'")
        await page.click("document.querySelector('[data-choose=days]')")
        await page.until(f"{FIRST}?.startsWith('Lag: 3.5K')")
        assert await page.evaluate("location.search") == ""
        assert page.errors == []


async def test_a_history_that_can_not_be_read_says_why_and_the_rest_stays(page: Page) -> None:
    why = "can't read s3://lake/history/lag: 403 <b>Forbidden</b>"
    async with serving({**TOLD, "history": True}, recent=recent(), days=why) as server:
        await page.open(f"{server.group()}?days=30")
        text = await page.until(f"{TEXT}.includes('history can\\'t be read') && {TEXT}")
        assert f"The history can't be read: {why}" in text
        assert "letters-0" in text


async def test_without_a_history_no_days_are_offered(page: Page) -> None:
    async with serving(TOLD, recent=recent()) as server:
        await page.open(server.group())
        await page.until(f"{FIRST}?.startsWith('Lag')")
        assert await page.evaluate("document.querySelectorAll('[data-choose=days]').length") == 0
