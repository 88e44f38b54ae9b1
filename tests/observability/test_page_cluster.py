"""What the page tells of groups and of partitions in movement, in a real browser."""

from __future__ import annotations

from tests.observability.browser import TEXT, Page
from tests.observability.page_server import serving
from tests.observability.page_states import group, now_ms, reassignment, state


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
            ["dead", "■ stopped", "33,000", "6 min 12 s", ""],
            ["old", "△ slow", "–", "≥ 3 h 15 min", ""],
            ["slow", "△ slow", "70,000", "1 min", ""],
            ["well", "✓ ok", "99,999", "0 s", ""],
            ["not-judged-yet", "–", "3", "–", ""],
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
        assert await page.evaluate(cells) == [["dead", "✓ ok", "0", "0 s", ""]]
        assert page.errors == []


async def test_a_movement_has_its_verdict_cause_evidence_advice_and_copies(page: Page) -> None:
    dead = reassignment(
        "dead",
        "dead target",
        cause="destination-broker-down",
        why="replica 2, away 84 s, not registered",
        advice="start broker 2, or cancel the reassignment",
        copies=[
            {"broker": 2, "role": "added", "in_sync": False, "away": True, "share": 0.25},
            {"broker": 1, "role": "removed", "in_sync": True, "share": 1.0},
        ],
    )
    fine = reassignment("fine", why="offsets behind 450")
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
            "1 → 2",
            "dead target",
            "destination broker down",
            "away 84 s, not registered",
            "start broker 2, or cancel the reassignment",
            "its broker is away",
            "45 MB left",
        ):
            assert said in first
        assert "never ends at this pace" in second
        assert "30 s to go" in last
        assert "1.5 MB/s" in last
        assert "50 %" in last
        assert "in sync" in last
        assert "offsets behind 450" not in last  # nobody needs the evidence of what is well
        assert "3 moving" in await page.evaluate(TEXT)
        assert page.errors == []


async def test_of_5000_partitions_in_movement_the_worst_are_shown_and_how_many_more(
    page: Page,
) -> None:
    worst = [reassignment(f"orders-{n}", "stalled") for n in range(50)]
    told = state(reassignments=worst, reassignment_counts={"stalled": 60, "moving": 4_940})
    async with serving(told) as server:
        await page.open(f"{server.url}reassignments")
        await page.until(f"{TEXT}.includes('4,950 more that fare no worse')")
        text = await page.evaluate(TEXT)
        assert "5,000 moving" in text
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
        text = await page.until(f"{TEXT}.includes('left over') && {TEXT}")
        assert "throttle left over on the broker 4" in text
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
