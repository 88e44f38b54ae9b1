"""The page, in a real browser, told what a service tells it."""

from __future__ import annotations

import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.web.server import WebServer
from caughtup.models.state.cluster import ClusterState
from tests.observability.browser import TEXT, Page
from tests.observability.page_server import PageServer, serving
from tests.observability.page_states import (
    A,
    B,
    application,
    event,
    group,
    now_ms,
    partition,
    reassignment,
    recent,
    state,
    stream,
)

MARKUP = "<img src=x onerror=\"document.title='owned'\"><b>"
LIVE = "document.querySelector('.link.ok') !== null"


async def test_copies_are_cells_that_say_role_lag_and_why_the_task_moves(page: Page) -> None:
    async with serving(state(applications=[application()])) as server:
        await page.open(server.group())
        await page.until("document.querySelectorAll('td.copy').length === 3")
        cell = "document.querySelector('td.warmup')"
        assert "W" in await page.evaluate(f"{cell}.textContent")
        said = await page.evaluate(f"{cell}.getAttribute('aria-label')")
        for part in ("Task 0_1 on orders-b", "lag 800, acceptable 10", "upper bound"):
            assert part in said
        assert "orders-a → orders-b" in said
        assert "orders-b is not caught up" in said
        assert "warming, caught up in about 1 min 19 s: 10.0/s nearer" in said
        # Beyond the acceptable lag: past the tick, and so by class, not by length alone.
        assert await page.evaluate(f"{cell}.classList.contains('behind')")
        text = await page.evaluate(TEXT)
        assert "? undetermined" in text
        assert "max.warmup.replicas" in text
        assert page.errors == []


async def test_it_says_who_measured_the_pace_of_copies_and_that_spark_is_silent(page: Page) -> None:
    measured = application() | {"rates": {"spark": 2, "own": 1}}
    silent = application() | {"rates": {"own": 3, "silent_since_ms": now_ms() - 120_000}}
    async with serving(state(applications=[measured])) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('2 measured by Spark, 1 by their own positions')")
        assert "nothing from Spark any more" not in await page.evaluate(TEXT)
        server.state = state(applications=[silent])
        server.push()
        await page.until(f"{TEXT}.includes('3 by their own positions')")
        assert "nothing from Spark any more: the last came 2 min" in await page.evaluate(TEXT)
        assert page.errors == []


async def test_every_movement_is_told_and_equal_ones_share_a_row(page: Page) -> None:
    told = application(tasks=5)
    swap = {"from": A, "to": B, "kind": "swap", "reason": "the active belongs there", "lag": 800}
    ready = {"to": B, "kind": "active", "reason": "lags 0 offsets", "lag": 0}
    told["recommendation"]["movements"] += [
        {"task": "0_1", **swap},  # to where the warm-up of the same task goes
        *({"task": f"0_{n}", **ready} for n in (4, 2, 3)),
    ]
    async with serving(state(applications=[told])) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('Recommended movements')")
        rows = "[...document.querySelectorAll('.moves tbody tr')].map(r => r.cells[{}].innerText)"
        assert await page.evaluate(rows.format(0)) == ["0_1", "0_1", "0_2 0_3 0_4"]
        kinds = ["warm-up", "swap", "caught up: hand over"]
        assert await page.evaluate(rows.format(1)) == kinds
        said = await page.evaluate("document.querySelector('td.warmup').getAttribute('aria-label')")
        assert "orders-b is not caught up" in said
        assert "the active belongs there" in said
        assert page.errors == []


async def test_what_both_plans_cost_stands_side_by_side_and_when_probing_is_worth_it(
    page: Page,
) -> None:
    told = application()
    async with serving(state(applications=[told])) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('Until balanced')")
        text = await page.evaluate(TEXT)
        assert "9 copies and 5 probing rebalances, 50 min by caughtup" in text
        assert (
            "96 copies and 49 probing rebalances, 8 h 10 min by Kafka's assignor, estimated" in text
        )
        assert "1 of 1 warm-ups (0_1) caught up in 79 s" in text
        assert "worth it now" not in text
        told["probing"]["worthwhile_now"] = True
        server.push()
        await page.until(f"{TEXT}.includes('worth it now')")
        assert page.errors == []


async def test_a_figure_that_is_old_is_hatched_and_is_the_same_with_its_age_wherever_it_stands(
    page: Page,
) -> None:
    told = application(tasks=3)
    now = now_ms()
    told["tasks"][1]["copies"][1] |= {
        "lag": 9_300,
        "provenance": "reported",
        "as_of_ms": now - 130_000,
    }
    told["tasks"][2]["copies"][0] |= {"lag": 70, "provenance": "measured", "as_of_ms": now}
    async with serving(state(applications=[told])) as server:
        await page.open(server.group())
        cell = "document.querySelector('td.warmup')"
        await page.until(f"{cell}?.classList.contains('soft')")
        assert await page.evaluate(f"{cell}.querySelector('i').dataset.figure") == "9.3K"
        assert "lag 9,300" in await page.evaluate(f"{cell}.ariaLabel")
        moved = "document.querySelector('.moves td.number')"
        assert (await page.evaluate(f"{moved}.innerText")).startswith("9.3K, 2 min")
        assert (await page.evaluate(f"{moved}.title")) == "800 when it was decided"
        assert await page.evaluate(f"{moved}.classList.contains('soft')")
        fresh = "document.querySelector('td.standby').classList.contains('soft')"
        assert not await page.evaluate(fresh)
        await page.evaluate(f"{cell}.focus()")
        tip = "document.getElementById('tip')"
        assert "2 min" in await page.until(f"!{tip}.hidden && {tip}.innerText")
        assert "estimated or old" in await page.evaluate(TEXT)
        assert page.errors == []


async def test_each_config_stands_there_with_how_it_is_known(page: Page) -> None:
    async with serving(state(applications=[application()])) as server:
        await page.open(server.group())
        text = await page.until(f"{TEXT}.includes('Configs') && {TEXT}")
        assert "max.warmup.replicas 2 or more learned from 4 generations" in " ".join(text.split())


async def test_a_generation_that_is_not_decided_yet_is_told(page: Page) -> None:
    waiting = {**application(), "generation": 6}
    waiting["history"] = [{"generation": 5, "at_ms": 0, "result": "match", "movements": 2}]
    async with serving(state(applications=[waiting])) as server:
        await page.open(server.group())
        told = "Generation 6 waits for end offsets. What follows is generation 5."
        await page.until(f"{TEXT}.includes('{told}')")
        server.state = state(applications=[{**waiting, "generation": 5}])
        server.push()
        await page.until(f"!{TEXT}.includes('waits for end offsets')")
        server.state = state(applications=[{**waiting, "history": []}])
        server.push()
        await page.until(f"{TEXT}.includes('Nothing is decided yet.')")


async def test_what_a_follower_says_that_it_did_stands_there_as_it_is(page: Page) -> None:
    told = application()
    reason = f"too_many_actives: did not follow d1; {MARKUP}"
    told["exact"] = {**told["exact"], "assignor": "FollowingTaskAssignor", "told": reason}
    async with serving(state(applications=[told])) as server:
        await page.open(server.group())
        text = await page.until(f"{TEXT}.includes('The leader says') && {TEXT}")
        assert reason in text
        assert await page.evaluate("document.title") != "owned"
        assert page.errors == []


async def test_a_follow_up_rebalance_is_due_at_once_and_not_since_1970(page: Page) -> None:
    followed = application()
    followed["probing"]["due_ms"] = 0
    async with serving(state(applications=[followed])) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('follow-up at once')")
        assert "overdue" not in await page.evaluate(TEXT)


async def test_streams_on_spark_say_how_they_get_on_and_why_not(page: Page) -> None:
    failed = stream("rates", "failed", why="no space left", quarantined=3, state_rows=1)
    async with serving(state()) as server:
        await page.open(server.url)
        await page.until(LIVE)
        assert "Streams on Spark" not in await page.evaluate(TEXT)
        server.state = state(streams=[stream("history"), failed])
        server.push()
        text = await page.until(f"{TEXT}.includes('Streams on Spark') && {TEXT}")
        assert "✓ running" in text
        assert "batch 12 of 500 records in 4 s" in text
        assert "42" in text
        assert "✖ failed" in text
        assert "no space left" in text
        assert "1 row of state" in text
        assert "3 records quarantined" in text
        server.state = state(streams=[stream("history", "late", heard_ms=now_ms() - 600_000)])
        server.push()
        await page.until(f"{TEXT}.includes('▲ late') && {TEXT}.includes('heard 10 min ago')")
        assert page.errors == []


async def test_names_from_kafka_are_text_and_never_markup(page: Page) -> None:
    hostile = application(MARKUP)
    hostile["clients"][0]["name"] = hostile["probing"]["carried_by"] = MARKUP
    hostile["recommendation"]["movements"][0]["reason"] = MARKUP
    groups = [group(MARKUP, "slow", why=MARKUP, group_type=MARKUP, lag=5)]
    told = state(
        applications=[hostile],
        groups=groups,
        cluster=MARKUP,
        streams=[stream(MARKUP, "failed", why=MARKUP)],
        reassignments=[reassignment(MARKUP, "stalled", cause=MARKUP, why=MARKUP, advice=MARKUP)],
    )
    async with serving(told) as server:
        for address in (server.url, server.group(MARKUP), f"{server.url}reassignments"):
            await page.open(address)
            await page.until(f"{TEXT}.includes('onerror')")
            assert await page.evaluate("document.images.length") == 0
            assert await page.evaluate("document.title") != "owned"
        assert page.errors == []


async def test_the_countdown_runs_by_the_services_clock_and_then_says_overdue(page: Page) -> None:
    counted = application()
    counted["probing"]["due_ms"] = now_ms() + 4000
    async with serving(state(applications=[counted])) as server:
        await page.open(server.group())
        await page.until(rf"/probing in [1-4] s/.test({TEXT})")
        await page.until(f"{TEXT}.includes('probing overdue by 2 s')")  # nothing was pushed


async def test_a_change_is_drawn_when_it_is_pushed(page: Page) -> None:
    async with serving(state()) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('Nobody knows a group of this name')")
        await page.until(LIVE)
        server.state = state(applications=[application()])
        server.push()
        await page.until("document.querySelectorAll('td.copy').length === 3", seconds=1.5)


async def test_without_a_stream_the_page_asks(page: Page) -> None:
    async with serving(state(), streams=False) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('by asking every 2 s')")
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
    await server.start()
    try:
        await page.until(LIVE)
        await page.until(f"!{TEXT}.includes('Connection lost')")
    finally:
        await server.stop()


async def test_a_reader_that_is_not_ready_is_told_with_what_is_left(page: Page) -> None:
    reader = {"records": 900, "lag": 12_345, "decode_errors": 2}
    async with serving(
        state(ready=False, unready=["catching up: 12345 records"], reader=reader)
    ) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('Catching up with the log: 12,345 records to go')")
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
        await page.until(f'{TEXT}.includes("can\'t read")')


async def test_the_matrix_is_one_stop_for_tab_and_arrows_go_on_and_show_the_tip(
    page: Page,
) -> None:
    async with serving(state(applications=[application(tasks=60)])) as server:
        await page.open(server.group())
        await page.until("document.querySelectorAll('td.copy').length > 50")
        assert await page.evaluate("document.querySelectorAll('td[tabindex=\"0\"]').length") == 1
        focused = "document.activeElement.getAttribute('aria-label') ?? ''"
        for _ in range(15):
            await page.press("Tab")
            if str(await page.evaluate(focused)).startswith("Task"):
                break
        assert str(await page.evaluate(focused)).startswith("Task 0_0 on orders-a")
        await page.press("ArrowRight")
        await page.press("ArrowDown")
        assert str(await page.evaluate(focused)).startswith("Task 0_1 on orders-b")
        tip = "document.getElementById('tip')"
        assert "warm-up" in await page.until(f"!{tip}.hidden && {tip}.innerText")
        server.state = {**server.state, "groups": [group("orders", "slow", lag=3)]}
        server.push()
        await page.until(f"{TEXT}.includes('slow')")  # drawn anew, with the focus where it was
        await page.press("End")
        assert str(await page.evaluate(focused)).startswith("Task 0_59 on orders-b")
        await page.press("Escape")
        await page.until(f"{tip}.hidden")


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_is_wider_than_the_window(page: Page, width: int, scheme: str) -> None:
    groups = [group(f"{'long-name-' * 12}{n}", "slow", why="w" * 300, lag=n) for n in range(200)]
    long = {"cause": "long-cause-" * 12, "why": "w" * 300, "advice": "a" * 300}
    moving = [reassignment("long-name-" * 24, "dead target", **long)]
    throttle = {"kind": "topic", "name": "long-name-" * 24, "what": "w" * 300, "advice": "a" * 300}
    partitions = [partition(n, "slow", topic="long-name-" * 24, why="w" * 300) for n in range(9)]
    told = state(
        applications=[application("a" * 249, tasks=300)],
        groups=groups,
        reassignments=moving,
        throttles=[throttle],
        partitions=partitions,
        feed=[event("t" * 300, group="a" * 249, why="w" * 300)],
        streams=[stream("long-name-" * 12, "failed", why="w" * 300)],
    )
    cells = "document.querySelectorAll('td.copy').length > 290"
    drawn = cells if width > 400 else "document.querySelector('[data-heat]')?.height > 10"
    async with serving(told, recent=recent()) as server:
        await page.scheme(scheme)
        for address, there in (
            (server.group("a" * 249), drawn),
            (server.url, "document.querySelectorAll('.groups tbody tr').length > 40"),
            (f"{server.url}reassignments", f"{TEXT}.includes('left over')"),
        ):
            await page.open(address, width=width)
            await page.until(there)
            root = "document.documentElement"
            assert await page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), address
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(244, 245, 243)", "dark": "rgb(18, 22, 21)"}[scheme]
        assert page.errors == []


async def test_the_service_serves_everything_that_the_page_loads(page: Page) -> None:
    settings = Settings(web_port=0)
    web = WebServer(settings, ClusterState("cluster-1", {}), Health(ready=True, reader_lag=0))
    await web.start()
    try:
        await page.open(f"http://127.0.0.1:{web.port}/")
        await page.until(f"{TEXT}.includes('No group has committed yet')", seconds=10)
        assert page.errors == []
    finally:
        await web.stop()


async def test_it_says_how_many_groups_are_left_out_and_nothing_where_none_is(page: Page) -> None:
    counts = {"ignored": 2, "folded": 1, "limited": 0}
    async with serving({**state(groups=[group("plain")]), "groups_not_told": counts}) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('2 groups ignored by the settings')")
        text = await page.evaluate(TEXT)
        assert "1 of caughtup's own and of Spark's drivers folded away." in text
        assert "as a whole in metrics" not in text
        server.state = state(groups=[group("plain")])
        server.push()
        await page.until(f"!{TEXT}.includes('ignored by the settings')")
        assert page.errors == []


async def test_a_query_of_spark_says_when_it_last_committed_a_batch(page: Page) -> None:
    query = group("spark:orders", group_type="spark", batch=41, batch_ms=now_ms() - 90_000)
    del query["members"]
    unread = {"checkpoint": f"/data/{MARKUP}", "problem": "bad_json", "why": MARKUP}
    async with serving({**state(groups=[query]), "checkpoint_problems": [unread]}) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('spark, 12 partitions, batch 41, ')")
        text = await page.evaluate(TEXT)
        assert f"The checkpoint /data/{MARKUP} can't be read: {MARKUP}." in text
        assert page.errors == []
