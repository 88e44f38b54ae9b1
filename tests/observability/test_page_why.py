"""The button "Why?" on a group's page: what it shows, and that names stay text."""

from __future__ import annotations

from urllib.parse import quote

from tests.observability.browser import TEXT, Page
from tests.support.observability.site import Site
from tests.support.states import HOSTILE, NOW_MS, STOPPED, assess, everything, judged

BUTTON = "[...document.querySelectorAll('button')].find(b => b.innerText === '{}')"


async def test_it_says_the_causes_once_somebody_asks_and_keeps_that_in_the_address(
    page: Page,
) -> None:
    async with Site(judged()) as site:
        await page.open(site.url(f"/groups/{STOPPED}"))
        await page.until(f"{BUTTON.format('Why?')} !== undefined")
        await page.click(BUTTON.format("Why?"))
        await page.until(f"{TEXT}.includes('Not known: whether an open transaction')")
        causes = "document.querySelector('[aria-label=Why] li').innerText"
        assert "100% of the group's lag" not in (first := await page.evaluate(causes))
        assert "4,900 offsets to read and no commit for 49 min" in first
        assert "why=1" in await page.evaluate("location.search")
        await page.click(BUTTON.format("Close"))
        await page.until(f"{BUTTON.format('Why?')} !== undefined")
        assert page.errors == []


async def test_a_hostile_name_in_an_answer_is_no_markup(page: Page) -> None:
    state = everything()
    assess(state, NOW_MS)
    async with Site(state) as site:
        await page.open(site.url(f"/groups/{quote(HOSTILE, safe='')}?why=1"))
        await page.until(f"{TEXT}.includes('holds back the last stable offset of clicks-0')")
        scripts = "[...document.scripts].filter(one => one.text.includes('alert')).length"
        assert await page.evaluate(scripts) == 0
        assert page.errors == []
