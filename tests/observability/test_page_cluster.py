"""What the page tells of groups and of partitions in movement, in a real browser."""

from __future__ import annotations

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import serving
from tests.observability.page_states import group, reassignment, state


async def test_groups_stand_worst_first_with_the_verdict_in_words_and_why(page: Page) -> None:
    why = "orders-3: 33,000 to read and no commit for 6 min"
    well = "partitions that keep up: 12, all"
    told = [
        group("well", "ok", why=well, lag=99_999, lag_seconds=0.4, generation=4),
        group("not-judged-yet", lag=3),
        group("dead", "stopped", why=why, lag=33_000, lag_seconds=372.0),
        group("old", "slow", why="since long", lag_seconds=11_700.0, lag_seconds_method="at_least"),
        group("slow", "slow", why="for a minute", lag=70_000, lag_seconds=60.0),
    ]
    async with serving(state(groups=told)) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('since long')")
        rows = "[...document.querySelectorAll('.groups tbody tr')]"
        cells = (
            f"{rows}.filter(r => r.cells.length > 1).map(r => [...r.cells].map(c => c.innerText))"
        )
        assert await page.evaluate(cells) == [
            ["dead", "■ stopped", "33,000", "6 min 12 s"],
            ["old", "△ slow", "–", "≥ 3 h 15 min"],
            ["slow", "△ slow", "70,000", "1 min"],
            ["well", "✓ ok", "99,999", "0 s"],
            ["not-judged-yet", "–", "3", "–"],
        ]
        text = await page.evaluate(TEXT)
        assert why in text
        assert well not in text
        assert "classic, 2 members, 12 partitions, generation 4" in text
        titles = "[...document.querySelectorAll('.groups td.together')].map(c => c.title)"
        assert await page.evaluate(titles) == [why, "since long", "for a minute", well, ""]
        signs = "[...document.querySelectorAll('.sign')].every(s => s.ariaHidden === 'true')"
        assert await page.evaluate(signs)
        server.state = state(groups=[group("dead", "ok", why=well, lag=0, lag_seconds=0.0)])
        server.push()
        await page.until(f"!{TEXT}.includes('33,000 to read')")
        assert await page.evaluate(cells) == [["dead", "✓ ok", "0", "0 s"]]
        assert page.errors == []


async def test_a_reassignment_is_called_stalled_only_after_five_minutes(page: Page) -> None:
    moving = [reassignment("slow", 299.0), reassignment("stuck", 400.0)]
    async with serving(state(reassignments=moving)) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('stuck-0')")
        rows = "[...document.querySelectorAll('tr')].filter(r => r.innerText.includes('{}'))"
        slow = await page.evaluate(rows.format("slow-0") + "[0].innerText")
        stuck = await page.evaluate(rows.format("stuck-0") + "[0].innerText")
        assert "no progress for 6 min 40 s" in stuck
        assert "1 → 2" in stuck
        assert "copying" in slow
