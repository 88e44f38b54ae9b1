"""The page of the real service, in a real browser, beside a real cluster at work."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.observability.browser import Page, chromium, new_page
from tests.support.observability.scene import LETTERS, PARCELS, SECONDS, Scene

TEXT = "(document.body?.innerText ?? '')"
CLIENTS = (
    "[...new Set([...document.querySelectorAll('.band tbody th .name')].map(n => n.innerText))]"
)
WARMUPS = "[...document.querySelectorAll('td.warmup')].map(cell => cell.getAttribute('aria-label'))"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(scene: Scene) -> AsyncIterator[Page]:
    """The page in a window that stays open from test to test, as on a wall."""
    with chromium() as browser:
        async with new_page(browser) as started:
            await started.open(f"{scene.stage.url}groups/orders", width=1600)
            await started.until("document.querySelectorAll('td.copy').length > 8")
            yield started
            assert started.errors == []


async def test_it_shows_every_client_every_task_and_the_role_of_every_copy(
    scene: Scene, page: Page
) -> None:
    assert await page.evaluate(CLIENTS) == ["orders-a", "orders-b", "orders-c"]
    view = scene.stage.application_view()
    assert view is not None
    names = {client["process"]: client["name"] for client in view["clients"]}
    roles = {"active": "active", "standby": "standby", "warmup": "warm-up", "none": "no role"}
    expected = {
        f"Task {task['task']} on {names[copy['process']]}. {roles[copy['role']]}"
        for task in view["tasks"]
        for copy in task["copies"]
    }
    cells = "[...document.querySelectorAll('td.copy')].map(cell => cell.getAttribute('aria-label'))"
    shown = {label.partition(":")[0] for label in await page.evaluate(cells)}
    assert shown == expected
    assert {label.split(" on ")[0] for label in shown} == {
        f"Task {subtopology}_{partition}" for subtopology in (0, 1) for partition in range(4)
    }


async def test_it_marks_the_warm_ups_with_their_lag_and_why_they_are_there(
    scene: Scene, page: Page
) -> None:
    warmups = await page.evaluate(WARMUPS)
    assert len(warmups) == scene.warm_ups in (1, 2)
    for said in warmups:
        assert "on orders-c" in said
        assert re.search(r"lag [\d,]+, acceptable 10", said)
        # The leader's reason; where it is recommended, too, the recommendation's.
        assert re.search(r"→ orders-c, warmup: .*warm-up \d of 2", said)
    assert f"{len(warmups)} warming up" in await page.evaluate(TEXT)


async def test_it_says_what_the_leader_decided(page: Page) -> None:
    assert "✓ the same as Kafka's own assignor" in await page.evaluate(TEXT)


async def test_it_counts_down_to_the_next_probing_rebalance(page: Page) -> None:
    counting = rf"({TEXT}.match(/probing (in \d+ min( \d+ s)?)/) ?? [])[1]"
    first = await page.until(counting)
    # It counts by the page's own clock, which goes two minutes a second here.
    await page.evaluate("window.slow = performance.now.bind(performance)")
    await page.evaluate("performance.now = () => 120 * window.slow()")
    await page.until(f"{counting} !== '{first}'")
    await page.evaluate("performance.now = window.slow")


async def test_it_shows_the_reassignment_and_its_progress(page: Page) -> None:
    await page.click("[...document.querySelectorAll('nav a')].find(a => /Reass/.test(a.innerText))")
    row = "document.querySelector('li.movement')?.innerText"
    said = await page.until(row)
    assert str(PARCELS) in said
    assert re.search(r"1 → 2|2 → 1", said)
    assert "copying" in said
    assert "moving" in said
    assert re.search(r"left [\d.]+ MB", said)
    ended = await page.evaluate("document.querySelector('.ended')?.innerText")
    assert f"{LETTERS} completed" in ended
    await page.until(f"{row} !== {said!r}")
    await page.evaluate("history.back()")
    await page.until("document.querySelectorAll('td.copy').length > 8")


async def test_a_leaving_instance_disappears_from_the_page_that_is_open(
    scene: Scene, page: Page
) -> None:
    """The last of this module: it changes what the others look at."""
    await page.evaluate("window.opened = 'once'")
    generation = rf"Number({TEXT}.match(/generation (\d+)/)[1])"
    before = await page.evaluate(generation)
    await asyncio.to_thread(scene.stage.application.stop_instance, "orders-c")
    await page.until(f"{generation} > {before}", seconds=SECONDS)
    await page.until(f"{CLIENTS}.join() === 'orders-a,orders-b'", seconds=SECONDS)
    assert await page.evaluate("window.opened") == "once"
