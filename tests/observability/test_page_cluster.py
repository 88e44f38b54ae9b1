"""What the page tells of groups and of partitions in movement, in a real browser."""

from __future__ import annotations

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import LIVE, serving
from tests.observability.page_states import (
    group,
    now_ms,
    partition,
    reassignment,
    state,
    stream,
)

MARKUP = "<img src=x onerror=\"document.title='owned'\"><b>"


async def test_groups_stand_worst_first_with_the_verdict_in_words_and_why(page: Page) -> None:
    why = "orders-3: 33,000 offsets to read and no commit for 6 min"
    well = "all 12 partitions keep up"
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
            ["dead", "■ stopped", "33,000", "6 min", ""],
            ["old", "△ slow", "–", "≥ 3.2 h", ""],
            ["slow", "△ slow", "70,000", "60 s", ""],
            ["not-judged-yet", "–", "3", "–", ""],
            ["well", "✓ ok", "99,999", "0.4 s", ""],
        ]
        text = await page.evaluate(TEXT)
        assert why in text
        assert well not in text
        assert "classic, 2 members, 12 partitions, generation 4" in text
        titles = "[...document.querySelectorAll('.groups td.together')].map(c => c.title)"
        assert await page.evaluate(titles) == [why, "since long", "for a minute", "", well]
        signs = "[...document.querySelectorAll('.sign')].every(s => s.ariaHidden === 'true')"
        assert await page.evaluate(signs)
        server.state = state(groups=[group("dead", "ok", why=well, lag=0, lag_seconds=0.0)])
        server.push()
        await page.until(f"!{TEXT}.includes('33,000 offsets to read')")
        assert await page.evaluate(cells) == [["dead", "✓ ok", "0", "0.0 s", ""]]
        assert page.errors == []


async def test_a_movement_has_its_verdict_cause_evidence_advice_and_copies(page: Page) -> None:
    dead = reassignment(
        "dead",
        "dead target",
        cause="destination-broker-down",
        why="broker 2, away 84 s, not registered",
        advice="start broker 2, or cancel the reassignment",
        copies=[
            {"broker": 2, "role": "added", "in_sync": False, "away": True, "share": 0.25},
            {"broker": 1, "role": "removed", "in_sync": True, "share": 1.0},
        ],
    )
    fine = reassignment("fine", why="450 offsets behind")
    endless = reassignment("endless", "diverging", never=True)
    counts = {"dead target": 1, "diverging": 1, "moving": 1}
    told = state(reassignments=[dead, endless, fine], reassignment_counts=counts)
    async with serving(told) as server:
        await page.open(f"{server.url}reassignments")
        await page.until(f"{TEXT}.includes('fine-0')")
        rows = "[...document.querySelectorAll('li.movement')].map(r => r.innerText)"
        first, second, last = await page.evaluate(rows)
        for said in (
            "dead-0",
            "from → to 1 → 2",
            "dead target",
            "destination broker down",
            "away 84 s, not registered",
            "start broker 2, or cancel the reassignment",
            "its broker is away",
            "left 45 MB",
        ):
            assert said in first
        assert "ends in never" in second
        assert "ends in 30 s" in last
        assert "1.5 MB/s" in last
        assert "50 %" in last
        assert "in sync" in last
        assert "450 offsets behind" not in last  # nobody needs the evidence of what is well
        assert "Reassignments 3 partitions" in await page.evaluate(TEXT)
        assert page.errors == []


async def test_of_5000_partitions_in_movement_the_worst_are_shown_and_how_many_more(
    page: Page,
) -> None:
    worst = [reassignment(f"orders-{n}", "stalled") for n in range(50)]
    told = state(reassignments=worst, reassignment_counts={"stalled": 60, "moving": 4_940})
    async with serving(told) as server:
        await page.open(f"{server.url}reassignments")
        await page.until(f"{TEXT}.includes('4,950 more, none of them worse')")
        text = await page.evaluate(TEXT)
        assert "Reassignments 5,000 partitions" in text
        assert "◆ stalled 60" in text
        assert "→ moving 4,940" in text


async def test_leftover_throttles_and_what_could_not_be_seen_are_told(page: Page) -> None:
    throttle = {
        "kind": "broker",
        "name": "4",
        "what": "leader.replication.throttled.rate=1000000",
        "since_ms": 0,
        "advice": "remove it: kafka-configs.sh …",
    }
    told = state(throttles=[throttle], reassignments_missing=["DESCRIBE on the cluster"])
    async with serving(told) as server:
        await page.open(f"{server.url}reassignments")
        text = await page.until(f"{TEXT}.includes('orphaned throttle') && {TEXT}")
        assert "orphaned throttle on the broker 4" in text
        assert "leader.replication.throttled.rate=1000000" in text
        assert "remove it: kafka-configs.sh" in text
        assert "Not known: DESCRIBE on the cluster" in text


async def test_movements_that_ended_have_how_and_which_ask_for_somebody(page: Page) -> None:
    ends = {
        "completed": "ok",
        "cancelled": "unsure",
        "superseded": "unsure",
        "reverted-partial": "bad",
        "vanished": "bad",
    }
    ended = [
        {"topic": outcome, "partition": 0, "outcome": outcome, "at_ms": now_ms() - 5_000}
        | {"original": [1, 2], "target": [3, 4], "replicas": [1, 3]}
        for outcome in ends
    ]
    async with serving(state(recent_reassignments=ended)) as server:
        await page.open(f"{server.url}reassignments")
        await page.until(f"{TEXT}.includes('reverted-partial-0')")
        found = "[...document.querySelectorAll('.ended li')]"
        spans = f"{found}.map(li => [li.children[1].innerText, li.children[1].className])"
        assert dict(await page.evaluate(spans)) == ends
        assert await page.evaluate(f"{found}[3].title") == "1,2 → 3,4, now 1,3"


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
        assert "batch 12 of 500 records in 4.0 s" in text
        assert "42" in text
        assert "✖ failed" in text
        assert "no space left" in text
        assert "1 row of state" in text
        assert "3 records quarantined" in text
        server.state = state(streams=[stream("history", "late", heard_ms=now_ms() - 600_000)])
        server.push()
        await page.until(f"{TEXT}.includes('▲ late') && {TEXT}.includes('reported 10 min ago')")
        assert page.errors == []


async def test_it_says_how_many_groups_are_left_out_and_nothing_where_none_is(page: Page) -> None:
    counts = {"ignored": 2, "folded": 1, "limited": 0}
    async with serving({**state(groups=[group("plain")]), "groups_not_told": counts}) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('2 groups ignored by the settings')")
        text = await page.evaluate(TEXT)
        assert "1 of caughtup's own and of Spark's drivers hidden." in text
        assert "by topic or by group only" not in text
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
        assert f"The service cannot read the checkpoint /data/{MARKUP}: {MARKUP}." in text
        assert page.errors == []


async def test_a_group_that_is_not_ok_says_for_how_long_it_has_not_been(page: Page) -> None:
    since = {"since_ms": now_ms() - 1_320_000, "lag": 7}
    told = [
        group("stopped", "stopped", why="no commit", **since),
        group("longer", "slow", why="behind", since_at_least=True, **since),
        group("well", "ok", why="all keep up", lag=1),
    ]
    async with serving(state(groups=told)) as server:
        await page.open(server.url)
        await page.until(f"{TEXT}.includes('for 22 min: no commit')")
        text = await page.evaluate(TEXT)
        assert "for 22 min or more: behind" in text
        await page.open(server.group("stopped"))
        await page.until(f"{TEXT}.includes('stopped for 22 min')")
        assert page.errors == []


async def test_a_commit_that_is_newer_than_the_logs_end_does_not_lie_beyond_it(page: Page) -> None:
    newer = {"committed": 105, "end_offset": 100, "lag": 0, "as_of_ms": now_ms() - 900}
    rows = [partition(0, **newer), partition(1, "rewound", why="lies beyond", **newer)]
    ends = "[...document.querySelectorAll('.partitions tbody tr')].map(r => r.cells[5])"
    async with serving(state(groups=[group("orders", "ok", lag=0)], partitions=rows)) as server:
        await page.open(server.group())
        await page.until(f"{ends}.length === 2")
        assert await page.evaluate(f"{ends}.map(cell => cell.innerText)") == ["≥ 105", "100"]
        assert "100 when it was listed" in await page.evaluate(f"{ends}[0].title")
