"""An application on the page, in a real browser, told what a service tells it."""

from __future__ import annotations

import re

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import serving
from tests.observability.page_states import A, B, application, group, now_ms, state

MARKUP = "<img src=x onerror=\"document.title='owned'\"><b>"


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
        assert "warming, caught up in about 79 s: 10.0/s nearer" in said
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
        await page.until(f"{TEXT}.includes('2 measured by Spark, 1 measured by caughtup')")
        assert "Spark reports no more rates" not in await page.evaluate(TEXT)
        server.state = state(applications=[silent])
        server.push()
        await page.until(f"{TEXT}.includes('3 measured by caughtup')")
        assert "Spark reports no more rates; the last one came 2 min" in await page.evaluate(TEXT)
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
        assert "5 movements\n3 at once, 1 swap, 1 warm-up" in await page.evaluate(TEXT)
        said = await page.evaluate("document.querySelector('td.warmup').getAttribute('aria-label')")
        assert "orders-b is not caught up" in said
        assert "the active belongs there" in said
        assert page.errors == []


async def test_a_movement_is_over_once_its_destination_runs_the_task(page: Page) -> None:
    told = application()
    cold = {"task": "0_0", "to": A, "kind": "cold", "reason": "nobody ran it", "lag": 800}
    told["recommendation"]["movements"] = [cold]
    async with serving(state(applications=[told])) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('every recommended movement is done')")
        text = await page.evaluate(TEXT)
        assert "nobody ran it" not in text
        assert "Until balanced" not in text
        told["tasks"][0]["copies"] = [told["tasks"][0]["copies"][0] | {"role": "restoring"}]
        server.push()
        await page.until(f"{TEXT}.includes('nobody ran it')")
        assert page.errors == []


async def test_what_both_plans_cost_stands_side_by_side_and_when_probing_is_worth_it(
    page: Page,
) -> None:
    told = application()
    async with serving(state(applications=[told])) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('Until balanced')")
        text = await page.evaluate(TEXT)
        assert "9 copies and 5 probing rebalances (up to 50 min) by caughtup" in text
        assert (
            "96 copies and 49 probing rebalances (up to 8.2 h) by Kafka's assignor, estimated"
            in text
        )
        assert "1 of 1 warm-ups (0_1) caught up in 79 s" in text
        assert "worthwhile now" not in text
        told["probing"]["worthwhile_now"] = True
        server.push()
        await page.until(f"{TEXT}.includes('worthwhile now')")
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
    told = application()
    told["configs"].append(
        {"name": "probing.rebalance.interval.ms", "values": "600000", "known": "told"}
    )
    async with serving(state(applications=[told])) as server:
        await page.open(server.group())
        text = " ".join((await page.until(f"{TEXT}.includes('Configs') && {TEXT}")).split())
        assert "max.warmup.replicas 2 or more, learned from 4 generations" in text
        assert "probing.rebalance.interval.ms 600000 (10 min), by the settings" in text


async def test_a_generation_that_is_not_decided_yet_is_told(page: Page) -> None:
    waiting = {**application(), "generation": 6}
    waiting["history"] = [{"generation": 5, "at_ms": 0, "result": "match", "movements": 2}]
    async with serving(state(applications=[waiting])) as server:
        await page.open(server.group())
        told = (
            "The service waits for end offsets to decide generation 6. The page shows generation 5."
        )
        await page.until(f"{TEXT}.includes('{told}')")
        server.state = state(applications=[{**waiting, "generation": 5}])
        server.push()
        await page.until(f"!{TEXT}.includes('waits for end offsets')")
        server.state = state(applications=[{**waiting, "history": []}])
        server.push()
        await page.until(f"{TEXT}.includes('No generation is decided yet.')")


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


async def test_the_countdown_runs_by_the_services_clock_and_then_says_overdue(page: Page) -> None:
    counted = application()
    async with serving(state(applications=[counted])) as server:
        await page.open(server.group())
        await page.until(f"{TEXT}.includes('probing in')")
        counted["probing"]["due_ms"] = now_ms() + 4000  # the browser has started by now
        server.state = state(applications=[counted])
        server.push()
        await page.until(rf"/probing in [1-4].0 s/.test({TEXT})")
        # Nothing is pushed meanwhile. A busy machine may leave out a second.
        await page.until(rf"/probing overdue by ([2-9]|[1-9][0-9])/.test({TEXT})")


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


async def test_an_instance_without_a_task_says_what_is_built_there_and_why_none_has_come(
    page: Page,
) -> None:
    told = application()
    reason = f"the active belongs on the destination, until {A} is caught up"
    told["leader_movements"] = [{"task": "0_1", "to": B, "kind": "warmup", "reason": reason}]
    async with serving(state(applications=[told])) as server:
        await page.open(server.group())
        text = " ".join(
            (await page.until(f"{TEXT}.includes('Without an active task') && {TEXT}")).split()
        )
        assert "orders-b 1 warm-up being built (0_1), the first caught up in about 79 s" in text
        assert "the next probing rebalance is due in" in text
        assert re.search(
            r"Why 0_1 is not here yet, as decided [\d.]+ s ago: the active belongs", text
        )
        assert "until orders-a is caught up" in text
        told["tasks"][0]["copies"] = [{**told["tasks"][0]["copies"][0], "process": B}]
        server.push()
        await page.until(f"!{TEXT}.includes('Without an active task')")
        assert page.errors == []


async def test_what_one_more_instance_would_cost_is_asked_once_somebody_wants_to_know(
    page: Page,
) -> None:
    button = "[...document.querySelectorAll('button')].find(b => b.innerText === '{}')"
    async with serving(state(applications=[application()])) as server:
        await page.open(server.group())
        await page.until(f"{button.format('What would it cost?')} !== undefined")
        assert not any("cost" in asked for asked in server.asked)
        await page.click(button.format("What would it cost?"))
        await page.until(
            f"{TEXT}.includes('2 copies and 1 probing rebalance (up to 10 min) by caughtup')"
        )
        assert "7 copies and 4 probing rebalances (up to 40 min) by Kafka's" in await page.evaluate(
            TEXT
        )
        await page.send("Page.reload")
        await page.until(f"{TEXT}.includes('7 copies and 4 probing rebalances')")
        await page.click(button.format("Close"))
        await page.until(f"!{TEXT}.includes('7 copies and 4')")
        assert page.errors == []
