"""What an instance that joined or left has cost, on the page, in a real browser."""

from __future__ import annotations

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import serving
from tests.observability.page_states import application, now_ms, state


async def test_what_an_instance_that_joined_cost_stands_side_by_side(page: Page) -> None:
    at_ms = now_ms() - 3_000_000
    joined = {"at_ms": at_ms, "text": "d joined"}
    apart = {"copies": 18, "rebalances": 15, "waits": 1, "waited_seconds": 60.0, **joined}
    alike = {"copies": 6, "rebalances": 8, "waits": 4, "waited_seconds": 31.0, **joined}
    long_ago = {**alike, "at_ms": at_ms - 8_000_000, "at_rest_ms": at_ms - 7_900_000}
    told = [
        application("unchanged"),
        application("long-ago") | {"change": long_ago},
        application("kafka") | {"change": apart},
        application("followed") | {"change": {**alike, "at_rest_ms": at_ms + 51_000}},
    ]
    async with serving(state(applications=told)) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('Since an instance joined or left')")
        rows = "[...document.querySelectorAll('.changes tbody tr')]"
        cells = await page.evaluate(f"{rows}.map(r => [...r.cells].map(c => c.innerText))")
        (first, *followed), (second, *kafka) = cells
        assert first.startswith("followed\nd joined, 50 min")
        assert followed == ["6", "8", "31 s, 4 times", "51 s"]
        assert second.startswith("kafka\nd joined, 50 min")
        assert kafka[:3] == ["18", "15", "60 s, once"]
        assert kafka[3].startswith("not yet, after 50 min")
        await page.resize(400, 900)
        cut = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
        assert await page.evaluate(f"{cut}.length") == 0
        await page.open(server.group("kafka"))
        await page.until(f"{TEXT}.includes('Since d joined')")
        text = await page.evaluate(TEXT)
        assert "18 copies begun, 15 rebalances, not at rest for 50 min" in text
        assert "60 s of that waiting for 1 rebalance that the application had scheduled" in text
        assert page.errors == []
