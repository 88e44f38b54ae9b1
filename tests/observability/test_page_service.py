"""How the page comes by what it shows, and what it says where that fails, in a real browser."""

from __future__ import annotations

from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.web.server import WebServer
from caughtup.models.state.cluster import ClusterState
from tests.observability.browser import TEXT, Page
from tests.observability.page_server import LIVE, PageServer, comes_back, serving
from tests.observability.page_states import application, now_ms, state

MARKUP = "<img src=x onerror=\"document.title='owned'\"><b>"


async def test_a_change_is_drawn_when_it_is_pushed(page: Page) -> None:
    async with serving(state()) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('There is no group of this name')")
        await page.until(LIVE)
        asked = len(server.asked)
        server.state = state(applications=[application()])
        server.push()
        await page.until("document.querySelectorAll('td.copy').length === 3")
        assert len(server.asked) == asked + 1  # what was pushed: the page asked for nothing


async def test_without_a_stream_the_page_asks(page: Page) -> None:
    async with serving(state(), streams=False) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('polled every 2 s')")
        server.state = state(groups=[{"group": "later", "partitions": 1, "lag": 3}])
        await page.until(f"{TEXT}.includes('later')")


async def test_a_broken_connection_is_told_the_last_state_stays_and_it_comes_back(
    page: Page,
) -> None:
    server = PageServer(state(applications=[application()]))
    await server.start()
    await page.open(server.group())
    await page.until(LIVE)
    await server.stop()
    await page.until(f"{TEXT}.includes('Connection lost, retrying')")
    assert "orders-b" in await page.evaluate(TEXT)
    await comes_back(server, page)


async def test_a_reader_that_is_not_ready_is_told_with_what_is_left(page: Page) -> None:
    reader = {"records": 900, "lag": 12_345, "decode_errors": 2}
    async with serving(
        state(ready=False, unready=["catching up: 12345 records"], reader=reader)
    ) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('Reading the log of groups: 12,345 records to read')")
        text = await page.evaluate(TEXT)
        assert "2 decode errors" in text
        assert "No group has committed" not in text


async def test_what_is_wrong_with_own_topics_is_told_beside_what_is_served(page: Page) -> None:
    notice = "caughtup-lag: cleanup.policy is delete, not compact: it is lost"
    async with serving(state(applications=[application()], notices=[notice])) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('{notice}')")
        assert "Not ready" not in await page.evaluate(TEXT)
        assert page.errors == []


async def test_records_that_no_broker_takes_are_told_with_their_group_and_why(page: Page) -> None:
    aside = {
        "topic": "caughtup-movements",
        "key": MARKUP,
        "reason": "too_large",
        "message": "9000 bytes: Broker: Message size too large",
        "times": 3,
        "at_ms": now_ms() - 120_000,
    }
    async with serving(state(set_aside=[aside])) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('Not written')")
        text = await page.evaluate(TEXT)
        for part in ("caughtup-movements", MARKUP, "too_large: 9000 bytes", "2 min"):
            assert part in text
        assert await page.evaluate("document.title") != "owned"
        assert page.errors == []


async def test_a_state_of_another_schema_is_refused(page: Page) -> None:
    async with serving({**state(), "schema": 3}) as server:
        await page.open(server.url)
        await page.until(f'{TEXT}.includes("cannot read the service")')


async def test_the_service_serves_everything_that_the_page_loads(page: Page) -> None:
    settings = Settings(web_port=0)
    web = WebServer(settings, ClusterState("cluster-1", {}), Health(ready=True, reader_lag=0))
    await web.start()
    try:
        await page.open(f"http://127.0.0.1:{web.port}/")
        await page.until(f"{TEXT}.includes('No group has committed yet')")
        assert page.errors == []
    finally:
        await web.stop()
