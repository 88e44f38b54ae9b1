"""Open transactions on the page, in a real browser, whatever ids their producers chose."""

from __future__ import annotations

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import serving
from tests.observability.page_states import now_ms, state

MARKUP = "<img src=x onerror=\"document.title='owned'\">"
HELD = [("payments", 2), ("payments", 3)]


async def test_a_transaction_says_whose_it_is_since_when_and_how_it_ends(page: Page) -> None:
    now = now_ms()
    told = {
        "transactional_id": MARKUP,
        "producer_id": 4_000,
        "producer_epoch": 1,
        "state": "Ongoing",
        "verdict": "Ongoing",
        "started_at_ms": now - 1_260_000,
        "ends_at_ms": now + 2_340_000,
        "partitions": [[*one, 90] for one in HELD],
        "blocked_groups": ["fraud-check", "receipts"],
        "records_behind": 12_345,
        "advice": "restart the producer",
    }
    async with serving(state(transactions=[told])) as server:
        await page.open(f"{server.url}transactions")
        await page.until(f"{TEXT}.includes('fraud-check')")
        text = await page.evaluate(TEXT)
        for said in (MARKUP, "21 min", "39 min", "payments-2 and 1 more", "12,345", "receipts"):
            assert said in text, said
        assert "restart the producer" in text
        assert await page.evaluate("document.title") == "Transactions · caughtup"


async def test_without_any_it_says_so_and_what_is_not_known(page: Page) -> None:
    missing = ["missing: DESCRIBE on all transactional ids"]
    async with serving(state(transactions=[], transactions_missing=missing)) as server:
        await page.open(f"{server.url}transactions")
        await page.until(f"{TEXT}.includes('No open transaction holds anything back')")
        assert "Not known: missing: DESCRIBE on all transactional ids" in await page.evaluate(TEXT)
